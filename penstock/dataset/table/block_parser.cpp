#include "penstock/dataset/table/block_parser.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "penstock/base/name_index.h"
#include "penstock/dataset/indexed/no_rows.h"
#include "penstock/dataset/table/value_memory.h"

// A block is parsed column by column: each field turns the columns it needs
// into one run of bytes per row, and says which rows it rejects. Then each row
// is judged once, over all fields: kept, left out as too short, or bad. The
// runs of kept rows are compacted in place and hashed; the others leave only a
// note. So a row costs no allocation, and a bad row costs the others nothing.
//
// One thread. What must be merged over blocks is in ParseNotes.

namespace penstock {
namespace {

// What a split sees of a value. A whole float64 is the integer, because one
// source calls 5 what another calls 5.0.
class ByValue {
 public:
  explicit ByValue(std::shared_ptr<const RowParts> parts)
      : in_parts_(parts != nullptr), names_(std::move(parts)) {}

  std::string_view of(const KeyList& keys, std::int64_t row) {
    if (in_parts_) return names_.of(keys.integer(row));
    return keys.type() == ColumnType::int64 ? bytes_of(keys.integer(row))
                                            : keys.bytes(row);
  }
  std::string_view of(const Column& column, std::int64_t row) {
    if (!column.valid(row)) return {};
    if (column.type.kind == ColumnKind::uuid)
      return {reinterpret_cast<const char*>(column.uuid(row)), 16};
    if (column.type.is_text()) return column.text(row);
    if (column.type == ColumnType::int64) return bytes_of(column.int64(row));
    double value = column.as_float64(row);
    if (std::abs(value) < 0x1p63 && value == std::trunc(value))
      return bytes_of(static_cast<std::int64_t>(value));
    return bytes_of(std::bit_cast<std::int64_t>(value));
  }

 private:
  std::string_view bytes_of(std::int64_t value) {
    value_ = value;
    return {reinterpret_cast<const char*>(&value_), sizeof(value_)};
  }
  const bool in_parts_;
  RowNames names_;
  std::int64_t value_ = 0;
};

/// Why a value is no weight; empty: it is one.
std::string no_weight(const Column& column, std::int64_t row) {
  const double weight = column.valid(row) ? column.as_float64(row) : -1;
  if (weight >= 0 && std::isfinite(weight)) return {};
  return "found " +
         (!column.valid(row)   ? std::string("NULL")
          : std::isnan(weight) ? "NaN"
          : std::isinf(weight) ? "an infinite number"
                               : Json(weight).dump()) +
         ", expected a weight: a finite number, 0 or more";
}

/// Seeds the hashes of values whose rows are counted.
constexpr std::uint64_t kValueOfRow = 0x76616c7565;  // "value"

/// Keeps the runs of these rows in `values`, and no others.
void compact(Values& values, std::span<const std::int64_t> rows) {
  if (values.rows() == std::ssize(rows)) return;
  std::size_t end = 0, count = 0;
  auto* to = values.bytes.mutable_data<std::byte>();
  for (std::int64_t row : rows) {
    ValueRow run = values.row(row);
    if (!run.empty()) std::memmove(to + end, run.data(), run.size());
    end += run.size();
    // A row stays where it is or moves forward: later ends are still whole.
    if (values.width == 0)
      values.ends[count++] = static_cast<std::uint32_t>(end);
  }
  values.ends.resize(count);
  values.bytes.resize(end);
}

}  // namespace

BoundFields bind_fields(const std::vector<Field>& fields,
                        const std::vector<ColumnInfo>& infos,
                        const std::vector<ColumnType>& types) {
  std::vector<ColumnRequest> requests = requests_of(fields);
  PENSTOCK_ASSERT(
      infos.size() >= requests.size() && types.size() >= requests.size(),
      "every request is answered");
  const NameIndex places(requests, &ColumnRequest::column);
  BoundFields bound;
  for (const Field& field : fields) {
    check_declared(field);
    FieldColumns columns;
    for (const ColumnRequest& request : field.kind->facts().columns) {
      const std::size_t at = places.find(request.column).value();
      columns.info.push_back(infos[at]);
      columns.types.push_back(types[at]);
      columns.at.push_back(at);
    }
    bound.push_back(field.kind->bind(std::move(columns)));
  }
  return bound;
}

BoundFields bind_fields(const std::vector<Field>& fields,
                        const Source& source) {
  std::vector<ColumnInfo> infos;
  const NameIndex names(source.schema().columns, &ColumnInfo::name);
  for (const ColumnRequest& request : requests_of(fields)) {
    const std::optional<std::size_t> found = names.find(request.column);
    infos.push_back(found ? source.schema().columns[*found]
                          : ColumnInfo{.name = request.column});
  }
  return bind_fields(fields, infos, source.types());
}

BoundSource bound_source(const std::vector<Field>& fields,
                         std::shared_ptr<Source> source) {
  // A source without rows need not know the types of its columns.
  if (source->abilities().by_position)  // by key it may cost a statement
    if (const RowCount count = source->count(); count.exact && count.rows == 0)
      refuse_no_rows(source->shown());
  BoundFields bound = bind_fields(fields, *source);
  return {.source = std::move(source), .fields = std::move(bound)};
}

std::size_t ParsedBlock::bytes() const {
  std::size_t sum = 0;
  for (const Values& values : fields) sum += values.bytes.size();
  return sum;
}

void ParseNotes::merge(ParseNotes&& other) {
  if (fields.size() < other.fields.size()) fields.resize(other.fields.size());
  for (std::size_t f = 0; f < other.fields.size(); ++f) {
    if (fields[f] == nullptr)
      fields[f] = std::move(other.fields[f]);
    else if (other.fields[f] != nullptr)
      fields[f]->merge(*other.fields[f]);
  }
  too_short += other.too_short;
  bad_rows += other.bad_rows;
  for (BadRow& row : other.bad)
    if (last_bad_.empty() || shown_before(row.shown_key, last_bad_))
      bad.push_back(std::move(row));
  if (bad.size() >= 2 * kMostBad) keep_first();
  left_out.merge(std::move(other.left_out));
  other = ParseNotes();
}

void ParseNotes::keep_first() {
  std::ranges::stable_sort(bad, shown_before, &BadRow::shown_key);
  if (bad.size() <= kMostBad) return;
  bad.resize(kMostBad);
  last_bad_ = bad.back().shown_key;
}

void ParseNotes::sort() {
  keep_first();
  left_out.sort();
}

struct BlockParser::State {
  enum class Outcome { kept, too_short, bad };
  struct FieldState {
    std::unique_ptr<FieldParser> parser;
    Values values;
    Faults faults;
    std::size_t next_fault = 0;
  };

  Options options;
  std::vector<FieldState> fields;
  ValueMemory memory;
  ByValue by;
  // Scratch, kept from block to block.
  KeyList keys;
  std::vector<std::int64_t> kept;
  std::vector<std::uint8_t> sides;
  std::vector<std::uint64_t> hashes, draws;
  LeftOutKeys left_out;
  std::vector<std::byte> run;               // of a row, all its fields
  std::vector<const RowProblem*> problems;  // by row, then column
  std::size_t next_problem = 0;
  std::vector<BadRow> bad;
  std::int64_t too_short = 0;

  explicit State(Options from) : options(std::move(from)), by(options.parts) {
    options.names.resize(options.fields.size());
    for (const auto& field : options.fields)
      fields.push_back({.parser = options.checks ? field->checking_parser()
                                                 : field->parser()});
  }

  void start(const KeyList& all, const Block& block) {
    PENSTOCK_ASSERT(block.columns.size() == options.columns.size() +
                                                options.by_column +
                                                (options.drawing ? 1 : 0),
                    "a block has the columns that were requested");
    PENSTOCK_ASSERT(all.size() == block.rows, "every row has a key");
    if (keys.type() != all.type()) keys = KeyList(all.type());
    keys.clear();
    kept.clear();
    sides.clear();
    hashes.clear();
    draws.clear();
    bad.clear();
    too_short = 0;
    sort_problems(block);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      FieldState& field = fields[f];
      field.values.clear();
      field.faults.rows.clear();
      field.next_fault = 0;
      field.parser->parse(block, field.values, field.faults);
      const std::string& name = options.names[f];
      check_runs(field.values, 0, block.rows, name);
      check_rejected(field.faults.rows, block.rows, name);
    }
  }

  void sort_problems(const Block& block) {
    problems.clear();
    next_problem = 0;
    for (const RowProblem& problem : block.problems)
      problems.push_back(&problem);
    std::ranges::sort(problems, [](const RowProblem* a, const RowProblem* b) {
      return a->row != b->row ? a->row < b->row : a->column < b->column;
    });
  }

  void refuse(const KeyList& all, std::int64_t row, std::string column,
              std::string why, std::int64_t byte) {
    bad.push_back({.key = all.json(row),
                   .shown_key = all.shown(row),
                   .column = std::move(column),
                   .why = std::move(why),
                   .byte = byte});
    left_out.add(all, row);
  }

  std::string name_of_column(std::size_t column) const {
    if (column < options.columns.size()) return options.columns[column];
    return options.by_column && column == options.columns.size()
               ? options.by_name
               : options.drawing.column;
  }

  /// The reader's own problem with this row, if it had one.
  const RowProblem* problem_of(std::int64_t row) {
    while (next_problem < problems.size() && problems[next_problem]->row < row)
      ++next_problem;
    bool found =
        next_problem < problems.size() && problems[next_problem]->row == row;
    return found ? problems[next_problem] : nullptr;
  }

  static RowFault* fault_of(FieldState& field, std::int64_t row) {
    std::vector<RowFault>& faults = field.faults.rows;
    while (field.next_fault < faults.size() &&
           faults[field.next_fault].row < row)
      ++field.next_fault;
    bool found =
        field.next_fault < faults.size() && faults[field.next_fault].row == row;
    return found ? &faults[field.next_fault] : nullptr;
  }

  // A row that is bad for one field and too short for another is bad.
  Outcome judge(const KeyList& all, const Block& block, std::int64_t row) {
    if (const RowProblem* problem = problem_of(row)) {
      refuse(all, row, name_of_column(problem->column), problem->why, -1);
      return Outcome::bad;
    }
    Outcome outcome = Outcome::kept;
    for (FieldState& field : fields) {
      RowFault* fault = fault_of(field, row);
      if (fault == nullptr) continue;
      outcome = Outcome::too_short;
      if (fault->too_short) continue;
      refuse(all, row, std::move(fault->place), std::move(fault->why),
             fault->byte);
      return Outcome::bad;
    }
    if (outcome != Outcome::kept || !options.drawing || options.drawing.balance)
      return outcome;
    const std::string why = no_weight(block.columns.back(), row);
    if (why.empty()) return outcome;
    refuse(all, row, options.drawing.column, why, -1);
    return Outcome::bad;
  }

  /// As draws_of() has it.
  std::uint64_t draw_of(const Block& block, std::int64_t row) {
    const Column& column = block.columns.back();
    if (!options.drawing.balance)
      return std::bit_cast<std::uint64_t>(column.as_float64(row));
    return column.valid(row) ? hash64(by.of(column, row), kValueOfRow) : 0;
  }

  void keep(const KeyList& all, const Block& block, std::int64_t row) {
    kept.push_back(row);
    keys.append(all, row);
    if (options.drawing) draws.push_back(draw_of(block, row));
    sides.push_back(
        options.side_of == nullptr ? std::uint8_t{0}
        : options.by_column
            ? options.side_of(by.of(block.columns[options.columns.size()], row))
            : options.side_of(by.of(all, row)));
  }

  /// Of the key, and of the values of all fields as one run.
  void hash() {
    std::vector<const Values*> canonical;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      canonical.push_back(options.canonical
                              ? &fields[f].parser->canonical(fields[f].values)
                              : &fields[f].values);
      if (canonical.back() != &fields[f].values)
        check_runs(*canonical.back(), 0, keys.size(), options.names[f]);
    }
    for (std::int64_t row = 0; row < keys.size(); ++row) {
      std::uint64_t key = hash_of_key(keys, row);
      if (canonical.size() == 1) {
        hashes.push_back(hash64(canonical[0]->row(row), key));
        continue;
      }
      run_of(canonical, row);
      hashes.push_back(hash64(run, key));
    }
  }

  void run_of(const std::vector<const Values*>& canonical, std::int64_t row) {
    std::size_t bytes = 0;
    for (const Values* values : canonical) bytes += values->row(row).size();
    run.resize(bytes);
    std::byte* to = run.data();
    for (const Values* values : canonical) {
      ValueRow part = values->row(row);
      if (!part.empty()) std::memcpy(to, part.data(), part.size());
      to += part.size();
    }
  }

  Bytes taken(std::span<const std::byte> values) {
    if (!options.lends_values) return memory.keep(values);
    // An owner of nothing, but not null: they are not the block's own.
    return Bytes::borrow(values, std::shared_ptr<const void>(
                                     std::shared_ptr<const void>(), this));
  }

  ParsedBlock finish(ParseNotes& notes) {
    ParseNotes of_block;
    ParsedBlock parsed;
    for (FieldState& field : fields) {
      compact(field.values, kept);
      field.parser->keep(kept, keys);
      of_block.fields.push_back(field.parser->take_notes());
    }
    hash();
    for (FieldState& field : fields) {
      if (!options.keeps_values) break;
      parsed.fields.push_back({.bytes = taken(field.values.bytes.span()),
                               .width = field.values.width,
                               .ends = field.values.ends});
    }
    of_block.too_short = too_short;
    of_block.bad_rows = std::ssize(bad);
    std::ranges::stable_sort(bad, shown_before, &BadRow::shown_key);
    of_block.bad = std::move(bad);
    of_block.left_out = std::exchange(left_out, {});
    notes.merge(std::move(of_block));
    // Copies have no room to spare.
    parsed.keys = keys;
    parsed.sides = sides;
    parsed.hashes = hashes;
    parsed.draws = draws;
    return parsed;
  }
};

BlockParser::BlockParser(Options options)
    : state_(std::make_unique<State>(std::move(options))) {}
BlockParser::~BlockParser() = default;
BlockParser::BlockParser(BlockParser&&) noexcept = default;

ParsedBlock BlockParser::parse(const KeyList& keys, const Block& block,
                               ParseNotes& notes) {
  State& state = *state_;
  state.start(keys, block);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    switch (state.judge(keys, block, row)) {
      case State::Outcome::kept:
        state.keep(keys, block, row);
        break;
      case State::Outcome::too_short:
        ++state.too_short;
        state.left_out.add(keys, row);
        break;
      case State::Outcome::bad:
        break;
    }
  }
  return state.finish(notes);
}

}  // namespace penstock
