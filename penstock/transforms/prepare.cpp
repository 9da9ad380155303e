#include "penstock/transforms/prepare.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/transforms/detail/raw_memory.h"
#include "penstock/transforms/detail/set_reader.h"
#include "penstock/transforms/detail/tally.h"

namespace penstock {
namespace {

// The bytes behind a row's text that belong to the same run of bytes.
std::size_t readable_behind(const ColumnData& column, std::string_view text) {
  auto* end = reinterpret_cast<const char*>(column.values.data()) +
              column.values.size();
  auto left = static_cast<std::size_t>(end - (text.data() + text.size()));
  return left + (column.values.owned() ? Bytes::kPadding : 0);
}

double number_of(const ColumnData& column, std::int64_t row) {
  switch (column.type) {
    case ColumnType::float64:
      return column.float64(row);
    case ColumnType::int64:
      return static_cast<double>(column.int64(row));
    default:
      return static_cast<double>(
          column.values.span()[static_cast<std::size_t>(row)]);
  }
}

void check_types(const Block& block, const std::vector<NeededColumn>& needed,
                 bool by_column) {
  PENSTOCK_ASSERT(block.columns.size() == 1 + needed.size() + by_column,
                  "a block has the columns that were asked for");
  for (std::size_t i = 0; i < needed.size(); ++i) {
    ColumnType type = block.columns[i + 1].type;
    bool text = type == ColumnType::json || type == ColumnType::text;
    bool number = type == ColumnType::float64 || type == ColumnType::int64 ||
                  type == ColumnType::boolean;
    PENSTOCK_ASSERT(needed[i].json      ? text
                    : needed[i].integer ? type == ColumnType::int64
                                        : number,
                    "a column has the type that was asked for");
  }
}

// What a split sees of a value. A whole float64 is the integer, because one
// source calls 5 what another calls 5.0.
class ByValue {
 public:
  std::string_view of(const ColumnData& column, std::int64_t row) {
    if (!column.valid(row)) return {};
    if (column.type == ColumnType::uuid)
      return {reinterpret_cast<const char*>(column.values.data()) + 16 * row,
              16};
    if (column.type == ColumnType::text || column.type == ColumnType::json)
      return column.text(row);
    if (column.type == ColumnType::int64) return bytes_of(column.int64(row));
    double value = number_of(column, row);
    if (std::abs(value) < 0x1p63 && value == std::trunc(value))
      return bytes_of(static_cast<std::int64_t>(value));
    return bytes_of(std::bit_cast<std::int64_t>(value));
  }

 private:
  std::string_view bytes_of(std::int64_t value) {
    value_ = value;
    return {reinterpret_cast<const char*>(&value_), sizeof(value_)};
  }
  std::int64_t value_ = 0;
};

std::uint64_t hash_of_key(const KeyList& keys, std::int64_t at) {
  if (keys.type() != ColumnType::int64) return hash64(keys.bytes(at));
  std::int64_t number = keys.integer(at);
  return hash64(std::as_bytes(std::span(&number, 1)));
}

struct ColumnPart {
  std::size_t column;  // of the block
  bool keeps_bits;     // dtype int64
};

}  // namespace

std::span<const double> RawBlock::row(std::int64_t at) const {
  auto i = static_cast<std::size_t>(at);
  std::size_t start = i == 0 ? 0 : ends[i - 1];
  return values.as<double>().subspan(start, ends[i] - start);
}

struct Preparer::State {
  struct Part {
    std::unique_ptr<SetReader> set;  // or null, and then:
    std::size_t set_column = 0;
    std::unique_ptr<Tally> tally;
    std::vector<ColumnPart> columns;
  };
  enum class Outcome { kept, too_short, bad };

  Options options;
  std::vector<NeededColumn> needed;
  std::vector<Part> parts;  // by field
  RawMemory memory;
  // Scratch, kept from block to block.
  KeyList keys;
  std::vector<double> values;
  std::vector<std::uint32_t> ends;
  std::vector<std::uint8_t> marks;
  std::vector<std::uint64_t> hashes;
  KeyList left_out;
  std::vector<const RowProblem*> problems;  // by row, then column
  std::size_t next_problem = 0;
  std::vector<BadRow> bad;

  explicit State(Options from) : options(std::move(from)) {
    needed = needed_columns(options.fields);
    auto place_of = [&](const std::string& name) {
      auto found = std::ranges::find(needed, name, &NeededColumn::name);
      return 1 + static_cast<std::size_t>(found - needed.begin());
    };
    for (const Field& field : options.fields) {
      Part& part = parts.emplace_back();
      if (const JsonSet* set = field.json_set()) {
        part.set = std::make_unique<SetReader>(*set);
        part.set_column = place_of(set->column);
        part.tally = std::make_unique<Tally>(part.set->numeric());
        continue;
      }
      for (const std::string& name : field.columns()->columns)
        part.columns.push_back(
            {place_of(name), field.columns()->dtype == Dtype::int64});
    }
  }

  void start(const Block& block) {
    check_types(block, needed, options.by_column);
    if (keys.type() != block.columns[0].type)
      keys = left_out = KeyList(block.columns[0].type);
    keys.clear();
    left_out.clear();
    values.clear();
    ends.clear();
    marks.clear();
    hashes.clear();
    bad.clear();
    problems.clear();
    next_problem = 0;
    for (const RowProblem& problem : block.problems)
      problems.push_back(&problem);
    std::ranges::sort(problems, [](const RowProblem* a, const RowProblem* b) {
      return a->row != b->row ? a->row < b->row : a->column < b->column;
    });
  }

  std::string name_of_column(std::size_t column) const {
    if (column == 0) return "the key";
    return column <= needed.size() ? needed[column - 1].name : options.by_name;
  }

  Outcome refuse(const Block& block, std::int64_t row, std::size_t column,
                 JsonFault fault) {
    BadRow& refused = bad.emplace_back();
    refused.column = name_of_column(column);
    refused.why = std::move(fault.why);
    refused.byte = fault.byte;
    if (column == 0 || !block.columns[0].valid(row)) return Outcome::bad;
    KeyList key(block.columns[0].type);
    key.append(block.columns[0], row);
    refused.key = key.json(0);
    refused.shown_key = key.shown(0);
    return Outcome::bad;
  }

  // The reader's own problem with this row, if it had one.
  const RowProblem* problem_of(std::int64_t row) {
    while (next_problem < problems.size() && problems[next_problem]->row < row)
      ++next_problem;
    bool found =
        next_problem < problems.size() && problems[next_problem]->row == row;
    return found ? problems[next_problem] : nullptr;
  }

  Outcome read_set(const Block& block, std::int64_t row, Part& part) {
    const ColumnData& column = block.columns[part.set_column];
    if (!column.valid(row))
      return refuse(block, row, part.set_column,
                    {-1, "is NULL, expected a list of objects"});
    std::string_view text = column.text(row);
    if (auto fault = part.set->read(text, readable_behind(column, text)))
      return refuse(block, row, part.set_column, std::move(*fault));
    if (part.set->too_short()) return Outcome::too_short;
    part.set->append_to(values);
    return Outcome::kept;
  }

  Outcome read_columns(const Block& block, std::int64_t row, Part& part) {
    for (const ColumnPart& from : part.columns) {
      const ColumnData& column = block.columns[from.column];
      if (!column.valid(row))
        return refuse(block, row, from.column,
                      {-1, "is NULL, expected a number"});
      if (from.keeps_bits) {
        values.push_back(std::bit_cast<double>(column.int64(row)));
        continue;
      }
      double value = number_of(column, row);
      if (!std::isfinite(value))
        return refuse(block, row, from.column,
                      {-1, std::string("holds ") +
                               (std::isnan(value) ? "NaN" : "an infinity") +
                               ", expected a finite number"});
      values.push_back(value + 0.0);  // -0.0 becomes 0.0
    }
    return Outcome::kept;
  }

  // A row that is bad for one field and too short for another is bad.
  Outcome read_row(const Block& block, std::int64_t row) {
    if (const RowProblem* problem = problem_of(row))
      return refuse(block, row, problem->column, {-1, problem->why});
    if (!block.columns[0].valid(row))
      return refuse(block, row, 0, {-1, "is NULL, expected a key"});
    Outcome outcome = Outcome::kept;
    for (Part& part : parts) {
      Outcome of_part = part.set != nullptr ? read_set(block, row, part)
                                            : read_columns(block, row, part);
      outcome = std::max(outcome, of_part);
      if (outcome == Outcome::bad) break;
    }
    return outcome;
  }

  void keep(const Block& block, std::int64_t row) {
    std::size_t start = ends.empty() ? 0 : ends.back();
    ends.push_back(static_cast<std::uint32_t>(values.size()));
    keys.append(block.columns[0], row);
    hashes.push_back(hash64(std::as_bytes(std::span(values).subspan(start)),
                            hash_of_key(keys, keys.size() - 1)));
    ByValue by;
    marks.push_back(
        options.mark == nullptr
            ? std::uint8_t{0}
            : options.mark(by.of(options.by_column ? block.columns.back()
                                                   : block.columns.front(),
                                 row)));
    for (Part& part : parts)
      if (part.set != nullptr) part.tally->add(part.set->elements(), keys);
  }

  void leave_out(const Block& block, std::int64_t row) {
    const RowProblem* problem = problem_of(row);
    bool of_key = problem != nullptr && problem->column == 0;
    if (!of_key && block.columns[0].valid(row))
      left_out.append(block.columns[0], row);
  }

  RawBlock finish(Seen& seen, std::int64_t too_short) {
    Seen of_block;
    of_block.sets.resize(parts.size());
    for (std::size_t field = 0; field < parts.size(); ++field)
      if (parts[field].set != nullptr)
        parts[field].tally->flush(keys, of_block.sets[field]);
    of_block.too_short = too_short;
    std::ranges::stable_sort(bad, sorts_before, &BadRow::shown_key);
    of_block.bad = std::move(bad);
    seen.merge(std::move(of_block));
    // Copies have no room to spare.
    return {keys, memory.keep(values), ends, marks, hashes, left_out};
  }
};

Preparer::Preparer(Options options)
    : state_(std::make_unique<State>(std::move(options))) {}
Preparer::~Preparer() = default;
Preparer::Preparer(Preparer&&) noexcept = default;

RawBlock Preparer::prepare(const Block& block, Seen& seen) {
  State& state = *state_;
  state.start(block);
  std::int64_t too_short = 0;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    std::size_t before = state.values.size();
    switch (state.read_row(block, row)) {
      case State::Outcome::kept:
        state.keep(block, row);
        continue;
      case State::Outcome::too_short:
        ++too_short;
        break;
      case State::Outcome::bad:
        break;
    }
    state.values.resize(before);
    state.leave_out(block, row);
  }
  return state.finish(seen, too_short);
}

}  // namespace penstock
