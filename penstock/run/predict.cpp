#include "penstock/run/predict.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "penstock/run/answer_table.h"
#include "penstock/run/generated_texts.h"

// Rows are read in the order of their source and prepared by the statistics of
// the run, window by window. Each window is a data set of its own, whose
// batches are those that validation would make of these rows; the model looks
// at one batch after the other, and its answers are written. While one window
// is predicted, the batches of the next are begun.

namespace penstock {
namespace {

/// The field that the model predicts; empty for a model of text.
std::string target_of(const ModelSpec& model) {
  const Json section = model_section(model);
  const Json* target = section.find("target");
  return target != nullptr && target->is_string() ? target->string() : "";
}

/// Whether the source has all columns of a field.
bool has_columns(const Schema& schema, const Field& field) {
  return std::ranges::all_of(field.kind->facts().columns,
                             [&](const ColumnRequest& request) {
                               return schema.find(request.column) != nullptr;
                             });
}

/// Keys where the rows have such, else their numbers.
std::unique_ptr<Source> open_rows_of(const SourceSpec& spec,
                                     const std::vector<Field>& fields,
                                     StopFlag stop) {
  const std::vector<ColumnRequest> requests = requests_of(fields);
  try {
    return open_source(spec, requests, {.stop = stop});
  } catch (const Error& error) {
    if (error.parts().code != "source.no_key") throw;
    return open_source(spec, requests, {.stop = stop, .keys = false});
  }
}

/// A window whose batches are begun.
struct OpenWindow {
  std::shared_ptr<const RowWindow> rows;
  std::shared_ptr<Session> session;
};

class Prediction {
 public:
  Prediction(const TrainedRun& run, const PredictOptions& options)
      : run_(run),
        options_(options),
        fields_(run.fitted()),
        job_(run.job),
        weights_(read_weights(run)),
        device_(device_of_run(run.job, {.own = options.own})) {
    open();
  }

  Predicted run();

 private:
  void open();
  void open_stream(std::vector<Field> fields, const SourceSpec& spec);
  std::optional<OpenWindow> next_window();
  void begin(const std::optional<OpenWindow>& first);
  void use_weights();
  void predict_window(const OpenWindow& window);
  struct Answers {
    std::vector<double> numbers;                        // row after row
    std::vector<std::vector<std::int32_t>> texts = {};  // by row, or none
  };
  void write(const RowWindow& rows, const Batch& batch, const Answers& answers);
  void leave_out(const RowWindow& rows, const RejectedSample& sample);
  Json key_of(const RowWindow& rows, SampleId sample) const;

  const TrainedRun& run_;
  const PredictOptions& options_;
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
  Predicted result_;
};

/// The rows of the source with all fields, or without the target where the
/// source has none.
void Prediction::open() {
  const SourceSpec spec = parse_source_spec(options_.source, "source");
  const std::string target = target_of(run_.job.model);
  std::vector<Field> fields = run_.job.fields;
  if (!target.empty() && !options_.measures) {
    const Schema schema = read_schema(spec);
    has_target_ = std::erase_if(fields, [&](const Field& field) {
                    return field.name == target && !has_columns(schema, field);
                  }) == 0;
  }
  const SourceSpec& trained =
      run_.job.sources.empty() ? run_.job.source : run_.job.sources[0].source;
  skips_bad_ = spec.skip_bad || trained.skip_bad;
  // What decides how batches are drawn does not apply.
  job_.fields = fields;
  job_.sources.clear();
  job_.loading.drawing = {};
  job_.loading.tail = validation_options(run_.job).tail;
  job_.loading.options.on_bad = OnBad::mask;
  open_stream(std::move(fields), spec);
}

void Prediction::open_stream(std::vector<Field> fields,
                             const SourceSpec& spec) {
  RowStreamOptions rows{
      .fields = std::move(fields),
      .workers = loader_options(job_, Side::val).workers,
      .batch_rows = loader_options(job_, Side::val).batch_size,
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

std::optional<OpenWindow> Prediction::next_window() {
  std::shared_ptr<const RowWindow> rows;
  if (stream_ != nullptr) rows = stream_->next();
  if (rows == nullptr) return std::nullopt;
  Order order = order_of(loader_options(job_, Side::val), *rows);
  std::unique_ptr<Session> session = open_loader(
      job_, {.side = Side::val,
             .batches = steps_per_epoch(order),
             .stop = {std::shared_ptr<void>(), options_.stop},
             .device = device_,
             .rows = [&](const Job&, Device&, StopFlag) { return rows; }});
  return OpenWindow{rows, std::move(session)};
}

/// Makes the model once the first rows are known, or that no row comes.
void Prediction::begin(const std::optional<OpenWindow>& first) {
  if (run_.job.model.kind != "own") {
    predictor_ = open_predictor(run_.job.model, fields_, *device_);
  } else {
    if (!first)
      throw Error(ErrorKind::source,
                  {.code = "predict.no_rows",
                   .what = "cannot make predictions",
                   .where = shown_,
                   .why = "the source has no row that can be used",
                   .next = "name a source with rows"});
    predictor_ = options_.own->make_predictor(job_, fields_, first->session);
  }
  use_weights();
  const bool named =
      stream_ != nullptr && stream_->source().facts().key != ColumnType::int64;
  if (options_.generation) texts_.emplace(run_.job, *options_.generation);
  table_.emplace(predictor_->facts(),
                 named ? ColumnType::text : ColumnType::int64,
                 texts_.has_value());
  if (options_.open) writer_ = options_.open(table_->columns());
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
               .next = "name the run that the weights are of, or put its own "
                       "back"});
}

Predicted Prediction::run() {
  std::optional<OpenWindow> current = next_window();
  begin(current);
  while (current) {
    std::optional<OpenWindow> next = next_window();
    predict_window(*current);
    current->session->close();
    current = std::move(next);
  }
  const RowsLeftOut left_out =
      stream_ != nullptr ? stream_->left_out() : RowsLeftOut();
  result_.bad += left_out.count();
  result_.bad_rows.insert(result_.bad_rows.begin(), left_out.bad.begin(),
                          left_out.bad.end());
  if (has_target_) result_.metrics = reported_measures(predictor_->measured());
  if (writer_ != nullptr) writer_->finish();
  return std::move(result_);
}

void Prediction::predict_window(const OpenWindow& window) {
  while (std::optional<Batch> next = window.session->next()) {
    const std::shared_ptr<Batch> batch =
        window.session->shared(std::move(*next));
    Answers answers{.numbers = predictor_->predict(batch, window.session)};
    if (texts_)
      answers.texts = predictor_->generate(batch, window.session, result_.rows,
                                           texts_->settings());
    for (const RejectedSample& sample : batch->rejected())
      leave_out(*window.rows, sample);
    write(*window.rows, *batch, answers);
  }
}

void Prediction::leave_out(const RowWindow& rows,
                           const RejectedSample& sample) {
  const Json key = key_of(rows, sample.sample);
  BadRow bad{
      .key = key,
      .shown_key = key.is_string() ? "'" + key.string() + "'" : key.dump(),
      .column = sample.place,
      .why = sample.why};
  if (!skips_bad_) refuse_bad_row(bad, shown_);
  ++result_.bad;
  if (result_.bad_rows.size() < RowsLeftOut::kMostNamed)
    result_.bad_rows.push_back(std::move(bad));
}

/// Rows by position may have names, as files of pictures do.
Json Prediction::key_of(const RowWindow& rows, SampleId sample) const {
  Json key = rows.key_of(sample);
  const bool numbered = std::holds_alternative<std::int64_t>(key.value());
  return numbered && !stream_->source().abilities().by_key
             ? row_name(stream_->source(), key.integer())
             : key;
}

void Prediction::write(const RowWindow& rows, const Batch& batch,
                       const Answers& answers) {
  const std::size_t each = predictor_->facts().names.size();
  const std::span<const SampleId> ids = batch.ids();
  std::vector<bool> rejected(ids.size());
  for (const RejectedSample& sample : batch.rejected())
    rejected[static_cast<std::size_t>(sample.row)] = true;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] < 0 || rejected[row]) continue;
    ++result_.rows;
    if (writer_ == nullptr) continue;
    table_->add(key_of(rows, ids[row]),
                std::span(answers.numbers).subspan(row * each, each));
    if (texts_) table_->add_text(texts_->text_of(answers.texts[row]));
  }
  if (writer_ != nullptr) writer_->write(table_->take());
}

}  // namespace

Predicted predict(const TrainedRun& run, const PredictOptions& options) {
  return Prediction(run, options).run();
}

}  // namespace penstock
