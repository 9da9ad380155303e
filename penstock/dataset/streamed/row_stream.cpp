#include "penstock/dataset/streamed/row_stream.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "penstock/dataset/row_place.h"

// One thread reads the blocks of the source in their order and numbers them;
// others parse and encode them; one puts them back into order and cuts them
// into windows. A ticket for each block bounds how far the reader runs ahead,
// and a queue of one window how far the rest does.
//
// The first error ends all stages: each closes what its neighbours wait for.

namespace penstock {
namespace {

constexpr std::size_t kBlocksAhead = 32;
constexpr std::int64_t kWindowRows = 65536;  // about
// For several takers: a window's first batches, and its rows later. What they
// make of their windows is brought together, so these are smaller.
constexpr std::int64_t kFirstBatches = 8;
constexpr std::int64_t kTakersRows = 8192;
constexpr std::size_t kWindowBytes = std::size_t{32} << 20;

BlockParser::Options parsing_of(const std::vector<Field>& fields,
                                const Source& source) {
  BlockParser::Options parsing{.fields = bind_fields(fields, source)};
  for (const Field& field : fields) parsing.names.push_back(field.name);
  for (const ColumnRequest& request : requests_of(fields))
    parsing.columns.push_back(request.column);
  parsing.lends_values = true;
  parsing.canonical = false;
  return parsing;
}

/// With the statistics of fields that are encoded alike whatever the data are.
std::shared_ptr<const FittedFields> fitted_from(const RowStreamOptions& options,
                                                const BoundFields& bound) {
  auto fitted = std::make_shared<FittedFields>(
      FittedFields{options.fields, options.statistics});
  for (std::size_t f = 0; f < bound.size(); ++f)
    if (Json& known = fitted->statistics[f]; known.is_null())
      known = bound[f]->unfitted().value_or(Json());
  return fitted;
}

/// Where a source has neither keys nor positions, its rows are numbered.
void number_rows(KeyList& keys, std::int64_t rows, std::int64_t first) {
  if (keys.size() == rows) return;
  keys = KeyList(ColumnType::int64);
  for (std::int64_t row = 0; row < rows; ++row)
    keys.append_integer(first + row);
}

/// Parses and encodes blocks. One per thread.
class BlockPreparer {
 public:
  BlockPreparer(const BlockParser::Options& parsing, const FittedFields& fitted,
                const RowLayout& layout)
      : parser_(parsing),
        encoder_(parsing.fields, fitted.fields, layout, fitted.statistics),
        fields_(fitted.fields.size()),
        row_bytes_(layout.row_bytes) {}

  std::shared_ptr<const PreparedBlock> prepare(const KeyList& keys,
                                               const Block& block) {
    ParseNotes notes;
    const ParsedBlock parsed = parser_.parse(keys, block, notes);
    auto made = std::make_shared<PreparedBlock>(
        PreparedBlock{.keys = KeyList(keys.type()),
                      .too_short = notes.too_short,
                      .bad_rows = notes.bad_rows,
                      .bad = std::move(notes.bad)});
    encode(parsed, *made);
    return made;
  }

 private:
  void encode(const ParsedBlock& parsed, PreparedBlock& made) {
    made.runs.resize(fields_);
    made.rows.resize(static_cast<std::size_t>(parsed.rows()) * row_bytes_);
    Faults faults;
    encoder_.encode(
        parsed.rows(),
        [&](std::int64_t row, std::size_t field) {
          return parsed.fields[field].row(row);
        },
        made.rows.data(), made.runs, faults);
    keep_first_of_each(faults, 0);
    std::size_t fault = 0;
    for (std::int64_t row = 0; row < parsed.rows(); ++row) {
      if (fault < faults.rows.size() && faults.rows[fault].row == row)
        refuse(parsed, std::move(faults.rows[fault++]), made);
      else
        keep(parsed, row, made);
    }
    made.rows.resize(made.kept.size() * row_bytes_);
  }

  void keep(const ParsedBlock& parsed, std::int64_t row, PreparedBlock& made) {
    const std::size_t to = made.kept.size() * row_bytes_,
                      from = static_cast<std::size_t>(row) * row_bytes_;
    if (to != from && row_bytes_ > 0)
      std::memmove(made.rows.data() + to, made.rows.data() + from, row_bytes_);
    made.keys.append(parsed.keys, row);
    made.kept.push_back(row);
  }

  static void refuse(const ParsedBlock& parsed, RowFault fault,
                     PreparedBlock& made) {
    ++made.bad_rows;
    made.bad.push_back({.key = parsed.keys.json(fault.row),
                        .shown_key = parsed.keys.shown(fault.row),
                        .column = std::move(fault.place),
                        .why = std::move(fault.why),
                        .byte = fault.byte});
  }

  BlockParser parser_;
  RowEncoder encoder_;
  const std::size_t fields_, row_bytes_;
};

/// Cuts blocks into windows of whole batches.
class WindowCutter {
 public:
  using Blocks = std::vector<std::shared_ptr<const PreparedBlock>>;
  using Places = std::vector<RowWindow::Place>;

  WindowCutter(std::int64_t batch, int takers)
      : batch_(batch), takers_(takers) {}

  void add(std::shared_ptr<const PreparedBlock> block) {
    if (block->count() == 0) return;
    bytes_ += block->bytes();
    for (std::int64_t row = 0; row < block->count(); ++row)
      places_.push_back({static_cast<std::uint32_t>(blocks_.size()),
                         static_cast<std::uint32_t>(row)});
    blocks_.push_back(std::move(block));
  }
  bool full() const {
    const std::int64_t rows = std::ssize(places_);
    return rows >= batch_ && (rows >= most_rows() || bytes_ >= kWindowBytes);
  }
  bool empty() const { return places_.empty(); }
  /// The rows of whole batches, or what is left; the others stay.
  std::pair<Blocks, Places> cut(bool all) {
    const std::int64_t rows = std::ssize(places_);
    const auto end = static_cast<std::ptrdiff_t>(
        all ? rows : std::min(rows / batch_ * batch_, most_rows()));
    ++cut_;
    std::pair<Blocks, Places> window{
        blocks_, Places(places_.begin(), places_.begin() + end)};
    Places rest(places_.begin() + end, places_.end());
    const std::uint32_t first = rest.empty() ? 0 : rest.front().block;
    for (RowWindow::Place& place : rest) place.block -= first;
    blocks_ = rest.empty() ? Blocks()
                           : Blocks(blocks_.begin() + first, blocks_.end());
    places_ = std::move(rest);
    bytes_ = 0;
    for (const auto& block : blocks_) bytes_ += block->bytes();
    return window;
  }

 private:
  /// Of the next window: doubled once each taker has had one.
  std::int64_t most_rows() const {
    const std::int64_t rows = takers_ == 1 ? kWindowRows : kTakersRows;
    const std::int64_t most = (rows + batch_ - 1) / batch_ * batch_;
    if (takers_ == 1) return most;
    const std::int64_t doubled = std::min<std::int64_t>(cut_ / takers_, 16);
    return std::min(most, (kFirstBatches << doubled) * batch_);
  }

  const std::int64_t batch_;
  const int takers_;
  std::int64_t cut_ = 0;
  Blocks blocks_;
  Places places_;
  std::size_t bytes_ = 0;  // of the blocks
};

}  // namespace

void refuse_bad_row(const BadRow& row, const std::string& source) {
  std::string place = "row " + row.shown_key + ", column '" + row.column + "'";
  if (row.byte >= 0) place += ", byte " + std::to_string(row.byte);
  throw Error(
      ErrorKind::transform,
      {.code = "data.bad_rows",
       .what = "a row is not usable",
       .where = source + ", " + place,
       .why = row.why,
       .next = "correct the row, or leave out and count all such rows: set "
               "\"source.on_bad\": \"skip\" in the job, or on_bad=skip "
               "in the source"});
}

RowStream::RowStream(std::unique_ptr<Source> source, RowStreamOptions options)
    : source_(std::move(source)),
      options_(std::move(options)),
      layout_(layout_of(options_.fields)),
      parsing_(parsing_of(options_.fields, *source_)),
      fitted_(fitted_from(options_, parsing_.fields)),
      tickets_(kBlocksAhead),
      raw_(kBlocksAhead),
      windows_(1) {
  // Refuses statistics of other fields before a thread is started.
  BlockPreparer(parsing_, *fitted_, layout_);
  const auto failed = [this](std::exception_ptr error) { end(error); };
  assembling_ = std::make_unique<Stage>(
      Stage::Options{.name = "assemble",
                     .body = [this](int) { assemble(); },
                     .failed = failed,
                     .last = [this] { windows_.close(); }});
  parsing_stage_ = std::make_unique<Stage>(
      Stage::Options{.name = "parse",
                     .workers = std::max(1, options_.workers),
                     .body = [this](int) { parse(); },
                     .failed = failed,
                     .last = [this] { prepared_.close(); }});
  reading_ =
      std::make_unique<Stage>(Stage::Options{.name = "read",
                                             .body = [this](int) { read(); },
                                             .failed = failed,
                                             .last = [this] { raw_.close(); }});
}

RowStream::~RowStream() {
  tickets_.close();
  raw_.close();
  prepared_.close();
  windows_.close();
}

// The error comes first: as soon as what is read ends, the last window is cut
// and the end is handed on, as if there were no more rows.
void RowStream::end(std::exception_ptr error) {
  windows_.fail(std::move(error));
  tickets_.close();
  raw_.close();
  prepared_.close();
}

void RowStream::read() {
  const std::unique_ptr<Reader> reader = open_checked_reader(*source_);
  std::int64_t number = 0, rows = 0;
  bool wanted = true;
  for (const Partition& partition : source_->partitions(1)) {
    reader->scan(partition, {}, [&](KeyList& keys, Block& block) {
      number_rows(keys, block.rows, rows);
      rows += block.rows;
      wanted = tickets_.push(0) &&
               raw_.push({number++, std::move(keys), std::move(block)});
      return wanted;
    });
    if (!wanted) return;
  }
}

void RowStream::parse() {
  BlockPreparer preparer(parsing_, *fitted_, layout_);
  while (std::optional<RawBlock> raw = raw_.pop())
    prepared_.put(raw->number, preparer.prepare(raw->keys, raw->block));
}

void RowStream::add(RowsLeftOut& all, const PreparedBlock& block) const {
  all.too_short += block.too_short;
  all.bad_rows += block.bad_rows;
  const std::size_t room = RowsLeftOut::kMostNamed - all.bad.size();
  std::vector<BadRow> bad(
      block.bad.begin(),
      block.bad.begin() +
          static_cast<std::ptrdiff_t>(std::min(room, block.bad.size())));
  add_places(*source_, bad);
  if (!options_.skip_bad && !bad.empty())
    refuse_bad_row(bad.front(), source_->shown());
  std::ranges::move(bad, std::back_inserter(all.bad));
}

void RowStream::assemble() {
  WindowCutter cutter(options_.batch_rows, options_.takers);
  RowsLeftOut left_out;
  std::int64_t rows = 0;
  const auto hand_on = [&](bool all) {
    auto [blocks, places] = cutter.cut(all);
    const std::int64_t first = std::exchange(rows, rows + std::ssize(places));
    return windows_.push(
        {std::make_shared<const RowWindow>(fitted_, layout_, std::move(blocks),
                                           std::move(places), first),
         left_out});
  };
  while (auto block = prepared_.take()) {
    tickets_.try_pop();
    add(left_out, **block);
    cutter.add(*std::move(block));
    while (cutter.full())
      if (!hand_on(false)) return;
  }
  if (!cutter.empty() && !hand_on(true)) return;
  windows_.push({nullptr, std::move(left_out)});
}

std::shared_ptr<const RowWindow> RowStream::next() {
  std::optional<Window> window = windows_.pop();
  if (!window) return nullptr;
  left_out_ = std::move(window->left_out);
  return std::move(window->rows);
}

}  // namespace penstock
