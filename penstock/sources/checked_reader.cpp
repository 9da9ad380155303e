#include "penstock/sources/checked_reader.h"

#include <limits>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/held_memory.h"
#include "penstock/base/sync.h"
#include "penstock/sources/blocks.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostElements = std::numeric_limits<std::int32_t>::max();

/// No row lies beyond it, so that sums of two do not overflow.
constexpr std::int64_t kFurthest = std::int64_t{1} << 61;

// One for all libraries that have one: they wait for each other too. Only what
// the source itself does is under this lock: a sink runs outside it, or a stage
// that waits for another reader's rows would wait for ever.
Mutex global_lock;

ColumnFault short_column(std::string why) {
  return {"source.short_column", std::move(why)};
}

/// Whether `size` bytes hold `count` elements of `width` bytes.
bool holds(const Bytes& bytes, std::int64_t count, std::size_t width) {
  return bytes.size() / width >= static_cast<std::size_t>(count);
}
bool holds_bits(const Bytes& bytes, std::int64_t count) {
  return bytes.size() >= static_cast<std::size_t>((count + 7) / 8);
}

// Arrow's rule (Columnar Format, Variable-size Binary Layout): n rows have n +
// 1 offsets, which do not descend and lie between 0 and the length of the
// values. Everything behind this check indexes without looking. O(rows).
ColumnFault fault_of_offsets(const Column& column, std::int64_t end_of_all) {
  std::size_t width = column.wide ? sizeof(std::int64_t) : sizeof(std::int32_t);
  if (column.length == 0) return {};
  if (!holds(column.offsets, column.first + column.length + 1, width))
    return short_column("the offsets end before the last row");
  std::int64_t begin = column.offset(0);
  for (std::int64_t row = 0; row < column.length; ++row) {
    std::int64_t end = column.offset(row + 1);
    if (begin < 0 || end < begin || end > end_of_all)
      return {"source.bad_offsets",
              "the row goes from element " + std::to_string(begin) + " to " +
                  std::to_string(end) + " of " + std::to_string(end_of_all),
              row};
    if (end - begin > kMostElements)
      return {"source.too_long",
              "the row has " + std::to_string(end - begin) +
                  " elements, but a row can have at most 2147483647",
              row};
    begin = end;
  }
  return {};
}

ColumnFault fault_of_indexes(const Column& column) {
  const std::int64_t values = column.children[0].length;
  for (std::int64_t row = 0; row < column.length; ++row) {
    if (!column.valid(row)) continue;
    std::int64_t index = column.as_int64(row);
    if (index < 0 || index >= values)
      return {"source.bad_offsets",
              "the row is value " + std::to_string(index) +
                  " of a dictionary of " + std::to_string(values),
              row};
  }
  return {};
}

/// Checks what a source gives, in the words of an error.
class BlockCheck {
 public:
  explicit BlockCheck(const Source& source) : source_(source) {
    for (std::size_t c = 0; c < source.types().size(); ++c)
      if (source.abilities().by_position && source.lengths(c, 0, {}))
        with_lengths_.push_back(c);
  }

  void check(const Block& block) const {
    const std::vector<ColumnType>& types = source_.types();
    if (block.columns.size() != types.size())
      refuse("source.wrong_columns", "",
             "the block has " + std::to_string(block.columns.size()) +
                 " columns, but " + std::to_string(types.size()) +
                 " were requested");
    for (std::size_t c = 0; c < types.size(); ++c) {
      const Column& column = block.columns[c];
      std::string place = "column " + std::to_string(c + 1);
      if (column.type != types[c])
        refuse("source.wrong_columns", place,
               "the type is " + std::string(name_of(column.type)) +
                   ", but was " + std::string(name_of(types[c])) +
                   " when the source was opened");
      ColumnFault fault = fault_of(column, block.rows);
      if (fault.code.empty()) continue;
      if (fault.row >= 0)
        place += ", row " + std::to_string(fault.row) + " of the block";
      refuse(fault.code, place, fault.why);
    }
    for (const RowProblem& problem : block.problems)
      if (problem.row < 0 || problem.row >= block.rows ||
          problem.column >= types.size())
        refuse("source.wrong_rows", "",
               "the block reports a problem with row " +
                   std::to_string(problem.row) +
                   ", which does not exist: " + problem.why);
  }

  void check_rows(const Block& block, std::int64_t expected,
                  const char* of) const {
    if (block.rows == expected) return;
    refuse("source.wrong_rows", "",
           "the block has " + std::to_string(block.rows) + " rows for " +
               std::to_string(expected) + " " + of);
  }

  /// `position(row)`: of each row of the block.
  template <class Position>
  void check_lengths(const Block& block, Position position) const {
    for (std::size_t c : with_lengths_) {
      const Column& column = block.columns[c];
      for (std::int64_t row = 0; row < block.rows; ++row) {
        std::int32_t said = 0;
        source_.lengths(c, position(row), std::span(&said, 1));
        std::int64_t found = column.offset(row + 1) - column.offset(row);
        if (found == said) continue;
        refuse("source.length_changed",
               "column " + std::to_string(c + 1) + ", position " +
                   std::to_string(position(row)),
               "the row has " + std::to_string(found) + " elements, but " +
                   std::to_string(said) + " were declared");
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::string code, const std::string& place,
                           std::string why) const {
    throw Error(ErrorKind::source,
                {.code = std::move(code),
                 .what = "cannot use a block that the source returned",
                 .where = source_.shown() + (place.empty() ? "" : ", ") + place,
                 .why = std::move(why),
                 .next = "the data changed while it was read, or the source "
                         "has a bug: report it to the author of the source"});
  }

  const Source& source_;
  std::vector<std::size_t> with_lengths_;  // columns
};

// Order of the steps in read(): positions are checked before the source sees
// them, the block before the caller sees it. The number of rows comes first, as
// the checks of lengths index the request by row.
class CheckedReader final : public Reader {
 public:
  explicit CheckedReader(Source& source)
      : check_(source),
        keys_(source.abilities().by_key || source.abilities().by_position),
        positions_(source.abilities().by_position &&
                   !source.abilities().by_key),
        locked_(source.abilities().global_lock),
        rows_(source.abilities().by_position ? source.count().rows.value_or(0)
                                             : 0),
        shown_(source.shown()),
        reader_(source.open_reader()) {
    if (const ChunkMap* map = source.chunks()) memory_ = map->reader;
  }

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override {
    charge_.change_to(memory_.scanning);
    if (!locked_)
      return reader_->scan(partition, limit, [&](KeyList& keys, Block& block) {
        check(keys, block);
        return sink(keys, block);
      });
    Lock lock(global_lock);
    reader_->scan(partition, limit,
                  [&](KeyList& keys, Block& block)
                      PENSTOCK_REQUIRES(global_lock) {
                        Unlock outside(global_lock);
                        check(keys, block);
                        return sink(keys, block);
                      });
  }

  void read(const ReadRequest& request, Block& out) override {
    for (std::int64_t position : request.positions)
      if (position < 0 || position >= rows_)
        throw Error(ErrorKind::source,
                    {.code = "source.row_gone",
                     .what = "cannot read position " + std::to_string(position),
                     .where = shown_,
                     .why = "the source has " + std::to_string(rows_) + " rows",
                     .next = "the data has changed: start the run again"});
    charge_.change_to(memory_.by_position);
    if (locked_) {
      Lock lock(global_lock);
      reader_->read(request, out);
    } else {
      reader_->read(request, out);
    }
    check_.check_rows(out, request.rows(), "that were requested");
    check_.check(out);
    if (request.keys != nullptr) return;
    check_.check_lengths(out, [&](std::int64_t row) {
      return request.positions[static_cast<std::size_t>(row)];
    });
  }

 private:
  void check(const KeyList& keys, const Block& block) const {
    if (keys_) check_.check_rows(block, keys.size(), "keys");
    check_.check(block);
    if (positions_)
      check_.check_lengths(block,
                           [&](std::int64_t row) { return keys.integer(row); });
  }

  const BlockCheck check_;
  const bool keys_, positions_, locked_;
  const std::int64_t rows_;  // by position
  const std::string shown_;
  const std::unique_ptr<Reader> reader_;
  ReaderMemory memory_;
  MemoryCharge charge_{HeldFor::records, HeldIn::host, 0};
};

}  // namespace

// Bounds are checked in the order in which later checks rely on them: `first`
// and the number of rows (so that their sum cannot overflow), the bitmap,
// children, then offsets into these. A validity bit is read only after the
// bitmap is known to be long enough.
ColumnFault fault_of(const Column& column, std::int64_t rows) {
  if (column.length != rows || rows < 0 || column.first < 0 ||
      column.first > kFurthest - rows)
    return {"source.wrong_rows",
            "the column has " + std::to_string(column.length) +
                " rows from row " + std::to_string(column.first) +
                " on in a block of " + std::to_string(rows)};
  const std::int64_t end = column.first + column.length;
  if (column.validity.size() != 0 && !holds_bits(column.validity, end))
    return short_column("the validity bits end before the last row");
  const bool list = column.type.kind == ColumnKind::list;
  if (list || column.type.kind == ColumnKind::dictionary) {
    if (column.children.size() != 1)
      return short_column("the column has no child with its values");
    const Column& child = column.children[0];
    ColumnFault fault = fault_of(child, child.length);
    if (!fault.code.empty()) {
      fault.why = "the column's child: " + fault.why;
      return fault;
    }
    if (list) return fault_of_offsets(column, child.length);
  }
  switch (column.type.kind) {
    case ColumnKind::null:
      return {};
    case ColumnKind::utf8:
    case ColumnKind::binary:
      return fault_of_offsets(column,
                              static_cast<std::int64_t>(column.values.size()));
    case ColumnKind::boolean:
      if (!holds_bits(column.values, end))
        return short_column("the values end before the last row");
      return {};
    default:
      break;
  }
  for (std::int64_t size : column.item)
    if (size < 0) return short_column("the item has a negative size");
  std::size_t width = width_of(column);
  if (width != 0 && !holds(column.values, end, width))
    return short_column("the values end before the last row");
  if (column.type.kind == ColumnKind::dictionary)
    return fault_of_indexes(column);
  return {};
}

std::unique_ptr<Reader> open_checked_reader(Source& source) {
  return std::make_unique<CheckedReader>(source);
}

}  // namespace penstock
