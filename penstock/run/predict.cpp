#include "penstock/run/predict.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/sha256_of.h"
#include "penstock/run/answer_table.h"
#include "penstock/run/generated_texts.h"
#include "penstock/run/ranks_of_run.h"
#include "penstock/run/row_answers.h"
#include "penstock/run/rows_to_predict.h"

// Rows are read in the order of their source and prepared by the statistics of
// the run, window by window. Each window is a data set of its own, whose
// batches are those that validation would make of these rows; the model looks
// at one batch after the other, and its answers are written. While one window
// is predicted, the batches of the next are begun.
//
// Of several ranks each reads all rows, for the order of a source is known only
// by reading it, and takes every N-th window. When each has predicted one, all
// send their answers to rank 0, which writes them in the order of the windows.
// So a row is in the same batch, and has the same answer, however many ranks
// there are.

namespace penstock {
namespace {

/// The field that the model predicts; empty for a model of text.
std::string target_of(const ModelSpec& model) {
  const Json section = model_section(model);
  const Json* target = section.find("target");
  return target != nullptr && target->is_string() ? target->string() : "";
}

/// A window whose batches are begun.
struct OpenWindow {
  std::shared_ptr<const RowWindow> rows;
  std::shared_ptr<Session> session;
};

/// A window of each rank, as long as there are any.
struct Round {
  std::optional<OpenWindow> mine;
  std::int64_t rows = 0;  ///< of all of them
};

class Prediction {
 public:
  Prediction(const TrainedRun& run, const PredictOptions& options,
             RankGroup* ranks)
      : run_(run),
        options_(options),
        ranks_(ranks),
        fields_(run.fitted()),
        job_(with_share_of_processors(run.job, ranks)),
        weights_(read_weights(run)),
        device_(device_of_run(run.job, {.own = options.own})) {
    check_devices(*device_, ranks_);
    open();
    check_same();
  }

  Predicted run();

 private:
  void open();
  void leave_out_bad_target(const SourceSpec& spec, std::vector<Field>& fields);
  std::string first_bad_row();
  void open_stream(std::vector<Field> fields, const SourceSpec& spec);
  void compare(const Json& facts);
  void check_same();
  void check_same_rows();
  Round next_round();
  OpenWindow opened(std::shared_ptr<const RowWindow> rows);
  void begin();
  void use_weights();
  void predict_round(const Round& round);
  std::optional<RowAnswers> next_answers(const OpenWindow& window);
  std::vector<std::string> texts_of(const OpenWindow& window,
                                    const std::shared_ptr<Batch>& batch);
  void write(RowAnswers answers);
  BadRow left_out(const RowWindow& rows, const RejectedSample& sample) const;
  Json key_of(const RowWindow& rows, SampleId sample) const;

  const TrainedRun& run_;
  const PredictOptions& options_;
  RankGroup* const ranks_;     // null: this process is alone
  const FittedFields fields_;  // of the model
  Job job_;                    // of the windows
  const FileOfWeights weights_;
  const std::shared_ptr<Device> device_;
  bool skips_bad_ = false, has_target_ = true;
  std::string shown_;                  // the source, for messages
  std::unique_ptr<RowStream> stream_;  // null: there is no row
  std::unique_ptr<Predictor> predictor_;
  std::optional<AnswerTable> table_;
  std::optional<GeneratedTexts> texts_;
  std::unique_ptr<TableWriter> writer_;
  std::int64_t read_ = 0;  // rows of all windows so far
  Predicted result_;
};

/// The rows of the source with all fields, or without the target where the
/// source has none.
void Prediction::open() {
  SourceSpec spec = parse_source_spec(options_.source, "source");
  const std::string target = target_of(run_.job.model);
  std::vector<Field> fields = run_.job.fields;
  const DropRepeats warned;  // by the schema, the target, and all fields
  const bool may_lack_target = !target.empty() && !options_.measures;
  if (may_lack_target || guesses_types(spec)) {
    const Schema schema = read_schema(spec);
    spec = with_column_types(std::move(spec), schema, run_.columns);
    auto lacks = [&](const Field& field) {
      return field.name == target && !has_columns(schema, field);
    };
    if (may_lack_target) has_target_ = std::erase_if(fields, lacks) == 0;
  }
  const SourceSpec& trained =
      run_.job.sources.empty() ? run_.job.source : run_.job.sources[0].source;
  skips_bad_ = spec.skip_bad || trained.skip_bad;
  // What decides how batches are drawn does not apply.
  job_.sources.clear();
  job_.loading.drawing = {};
  job_.loading.tail = validation_options(run_.job).tail;
  job_.loading.options.on_bad = OnBad::mask;
  if (has_target_ && may_lack_target) leave_out_bad_target(spec, fields);
  job_.fields = fields;
  open_stream(std::move(fields), spec);
}

/// Rows are predicted without their target where one of them has no valid one.
void Prediction::leave_out_bad_target(const SourceSpec& spec,
                                      std::vector<Field>& fields) {
  const auto target =
      std::ranges::find(fields, target_of(run_.job.model), &Field::name);
  if (target == fields.end()) return;
  job_.fields = {*target};
  const bool skips_bad = std::exchange(skips_bad_, true);
  open_stream(job_.fields, spec);
  result_.not_measured = first_bad_row();
  skips_bad_ = skips_bad;
  stream_.reset();
  if (result_.not_measured.empty()) return;
  has_target_ = false;
  fields.erase(target);
}

/// Of all rows of the stream: "row 7, column 'species': is NULL, expected a
/// class"; empty if all are good.
std::string Prediction::first_bad_row() {
  auto shown = [](const BadRow& row) {
    return "row " + row.shown_key + ", column '" + row.column + "': " + row.why;
  };
  while (stream_ != nullptr) {
    const std::shared_ptr<const RowWindow> rows = stream_->next();
    if (!stream_->left_out().bad.empty())
      return shown(stream_->left_out().bad.front());
    if (rows == nullptr) break;
    const OpenWindow window = opened(rows);
    while (const std::optional<Batch> batch = window.session->next())
      if (!batch->rejected().empty())
        return shown(left_out(*rows, batch->rejected().front()));
    window.session->close();
  }
  return {};
}

void Prediction::open_stream(std::vector<Field> fields,
                             const SourceSpec& spec) {
  RowStreamOptions rows{
      .fields = std::move(fields),
      .workers = loader_options(job_, Side::val).workers,
      .batch_rows = loader_options(job_, Side::val).batch_size,
      .takers = ranks_ != nullptr ? ranks_->rank().world : 1,
      .skip_bad = skips_bad_};
  for (const Field& field : rows.fields)
    rows.statistics.push_back(fields_.statistics_of(field.name));
  std::unique_ptr<Source> source =
      open_rows_of(spec, rows.fields, options_.stop);
  shown_ = source->shown();
  // Columns of an empty file may have no type.
  if (const RowCount count = source->count(); count.exact && count.rows == 0)
    return;
  stream_ = std::make_unique<RowStream>(std::move(source), std::move(rows));
}

/// Ranks that have other weights or rows than the first would answer for the
/// wrong ones.
void Prediction::check_same() {
  if (ranks_ == nullptr) return;
  Json facts;
  facts["weights"] = sha256_of(weights_.file->bytes());
  facts["source"] = options_.source.dump();
  const RowCount count =
      stream_ != nullptr ? stream_->source().count() : RowCount{};
  if (count.rows) facts["rows"]["in all"] = *count.rows;
  compare(facts);
}

/// The rows of a source may change while the ranks read them.
void Prediction::check_same_rows() {
  if (ranks_ == nullptr) return;
  Json facts;
  facts["rows"]["read"] = read_;
  compare(facts);
}

void Prediction::compare(const Json& facts) {
  compare_ranks([&](const std::string& mine) { return ranks_->gather(mine); },
                ranks_->rank(), facts);
}

OpenWindow Prediction::opened(std::shared_ptr<const RowWindow> rows) {
  Order order = order_of(loader_options(job_, Side::val), *rows);
  std::unique_ptr<Session> session = open_loader(
      job_, {.side = Side::val,
             .batches = steps_per_epoch(order),
             .stop = {std::shared_ptr<void>(), options_.stop},
             .device = device_,
             .rows = [&](const Job&, Device&, StopFlag) { return rows; }});
  return {rows, std::move(session)};
}

Round Prediction::next_round() {
  const Rank rank = ranks_ != nullptr ? ranks_->rank() : Rank{};
  Round round;
  for (int of = 0; of < rank.world && stream_ != nullptr; ++of) {
    std::shared_ptr<const RowWindow> rows = stream_->next();
    if (rows == nullptr) break;
    round.rows += rows->facts().rows;
    if (of == rank.rank) round.mine = opened(std::move(rows));
  }
  read_ += round.rows;
  return round;
}

/// Makes the model and the table.
void Prediction::begin() {
  predictor_ = run_.job.model.kind == "own"
                   ? options_.own->make_predictor(job_, fields_, *device_)
                   : open_predictor(job_.model, fields_, *device_);
  use_weights();
  const bool named =
      stream_ != nullptr && stream_->source().facts().key != ColumnType::int64;
  if (options_.generation) texts_.emplace(run_.job, *options_.generation);
  table_.emplace(predictor_->facts(),
                 named ? ColumnType::text : ColumnType::int64,
                 texts_.has_value());
  if (options_.open && writes_for_all(ranks_))
    writer_ = options_.open(table_->columns());
}

void Prediction::use_weights() try {
  predictor_->use(weights_.state);
} catch (const Error& error) {
  if (error.parts().code != "resume.other_model") throw;
  throw Error(ErrorKind::request,
              {.code = "predict.other_model",
               .what = "cannot make predictions",
               .where = weights_.path.string() + ", " + error.parts().where,
               .why = error.parts().why,
               .next = "name the run that wrote the weights, or restore the "
                       "weights of this run"});
}

Predicted Prediction::run() {
  Round round = next_round();
  begin();
  for (check_same_rows(); round.rows > 0; check_same_rows()) {
    Round next = next_round();
    predict_round(round);
    if (round.mine) round.mine->session->close();
    round = std::move(next);
  }
  const RowsLeftOut left_out =
      stream_ != nullptr ? stream_->left_out() : RowsLeftOut();
  result_.bad += left_out.count();
  result_.bad_rows.insert(result_.bad_rows.begin(), left_out.bad.begin(),
                          left_out.bad.end());
  if (has_target_)
    result_.metrics = reported_measures(predictor_->measured(ranks_));
  if (writer_ != nullptr) writer_->finish();
  if (ranks_ != nullptr) ranks_->gather("");  // rank 0 has written all
  return std::move(result_);
}

void Prediction::predict_round(const Round& round) {
  RowAnswers mine;
  while (round.mine) {
    std::optional<RowAnswers> some = next_answers(*round.mine);
    if (!some) break;
    if (ranks_ != nullptr)
      mine.append(std::move(*some));
    else
      write(std::move(*some));
  }
  if (ranks_ == nullptr) return;
  for (const std::string& of_rank : ranks_->gather(bytes_of(mine)))
    if (ranks_->first()) write(row_answers_in(of_rank));
}

/// Those of the window's next batch.
std::optional<RowAnswers> Prediction::next_answers(const OpenWindow& window) {
  std::optional<Batch> next = window.session->next();
  if (!next) return std::nullopt;
  const std::shared_ptr<Batch> batch = window.session->shared(std::move(*next));
  const std::vector<double> numbers =
      predictor_->predict(batch, window.session);
  std::vector<std::string> texts;
  if (texts_) texts = texts_of(window, batch);
  RowAnswers answers;
  const std::span<const SampleId> ids = batch->ids();
  std::vector<bool> rejected(ids.size());
  for (const RejectedSample& sample : batch->rejected()) {
    rejected[static_cast<std::size_t>(sample.row)] = true;
    answers.bad_rows.push_back(left_out(*window.rows, sample));
    ++answers.bad;
  }
  const std::size_t each = predictor_->facts().names.size();
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] < 0 || rejected[row]) continue;
    answers.keys.push_back(key_of(*window.rows, ids[row]));
    const auto first =
        numbers.begin() + static_cast<std::ptrdiff_t>(row * each);
    answers.numbers.insert(answers.numbers.end(), first,
                           first + static_cast<std::ptrdiff_t>(each));
    if (texts_) answers.texts.push_back(std::move(texts[row]));
  }
  return answers;
}

/// What is drawn for a row depends on its number in the source alone.
std::vector<std::string> Prediction::texts_of(
    const OpenWindow& window, const std::shared_ptr<Batch>& batch) {
  const std::int64_t first =
      window.rows->first() + (batch->rows() > 0 ? batch->ids()[0] : 0);
  std::vector<std::string> texts;
  for (const std::vector<std::int32_t>& tokens :
       predictor_->generate(batch, window.session, first, texts_->settings()))
    texts.push_back(texts_->text_of(tokens));
  return texts;
}

BadRow Prediction::left_out(const RowWindow& rows,
                            const RejectedSample& sample) const {
  const Json key = key_of(rows, sample.sample);
  BadRow bad{
      .key = key,
      .shown_key = key.is_string() ? "'" + key.string() + "'" : key.dump(),
      .column = sample.place,
      .why = sample.why};
  if (!skips_bad_) refuse_bad_row(bad, shown_);
  return bad;
}

void Prediction::write(RowAnswers answers) {
  result_.rows += answers.rows();
  result_.bad += answers.bad;
  for (BadRow& row : answers.bad_rows)
    if (result_.bad_rows.size() < RowsLeftOut::kMostNamed)
      result_.bad_rows.push_back(std::move(row));
  if (writer_ == nullptr) return;
  const std::size_t each = predictor_->facts().names.size();
  for (std::size_t row = 0; row < answers.keys.size(); ++row) {
    table_->add(answers.keys[row],
                std::span(answers.numbers).subspan(row * each, each));
    if (texts_) table_->add_text(answers.texts[row]);
  }
  writer_->write(table_->take());
}

/// Rows by position may have names, as files of pictures do.
Json Prediction::key_of(const RowWindow& rows, SampleId sample) const {
  Json key = rows.key_of(sample);
  const bool numbered = std::holds_alternative<std::int64_t>(key.value());
  return numbered && !stream_->source().abilities().by_key
             ? row_name(stream_->source(), key.integer())
             : key;
}

}  // namespace

Predicted predict(const TrainedRun& run, const PredictOptions& options) {
  const std::unique_ptr<RankGroup> ranks = join_ranks(run.job, options.own);
  if (ranks == nullptr) return Prediction(run, options, nullptr).run();
  return as_one_of(*ranks, [&] {
    Predicted result = Prediction(run, options, ranks.get()).run();
    result.rank = ranks->rank().rank;
    return result;
  });
}

}  // namespace penstock
