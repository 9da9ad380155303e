#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/columns.h"
#include "penstock/base/key.h"
#include "penstock/sources/kinds.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/stop.h"

namespace penstock {

/// A part of one consistent pass over all rows. The parts of one pass show the
/// same snapshot, which ends when the last of them is destroyed.
struct Partition {
  std::string range;  ///< for messages: "rows 1..4096"; source's own meaning
  std::int64_t index = 0;
  std::shared_ptr<void> snapshot;
};

/// Reads rows; belongs to one thread at a time.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Hands every row of `partition` to `sink` in blocks of at most
  /// `block_rows` rows; the sink may move the block away, and ends the scan by
  /// returning false. Throws Error(source). May wait for another reader's scan
  /// of the same pass, so no sink begins one in its own thread.
  virtual void scan(const Partition& partition, std::int64_t block_rows,
                    const std::function<bool(Block&)>& sink) = 0;
  /// Fills `out` with the rows of these keys, in this order, by one
  /// statement. A key that is gone is an Error(source) that names it.
  virtual void read(const KeyList& keys, Block& out) = 0;
};

/// A place where records live. Thread-safe; readers are not.
///
/// Opening checks that the table and the wanted columns are there, so a
/// Source that exists can be read. It owns no threads.
class Source {
 public:
  virtual ~Source() = default;
  /// All columns of the table, whether wanted or not.
  virtual const Schema& schema() const = 0;
  /// The type that a block's column has for each `Wanted`, in order.
  virtual std::vector<ColumnType> types() const = 0;
  /// Rows, exact or estimated; nullopt when finding out would cost a scan.
  virtual std::optional<std::int64_t> estimated_rows() const = 0;
  /// One consistent pass for at most `readers` readers at a time: at least one
  /// part, and more than `readers` where parts may differ much in size.
  virtual std::vector<Partition> partitions(int readers) = 0;
  virtual std::unique_ptr<Reader> open_reader() = 0;
  /// For messages, without secrets: "measurements in train.sqlite".
  virtual std::string shown() const = 0;
};

/// Finds out the key (where the spec leaves it open) and checks all columns.
/// `wanted` lists what a block shall hold after the key: a block's column 0 is
/// always the key. Throws Error(source) or Error(request).
///
/// Once `stop` is set, opening and whatever the source and its readers do next
/// throw an error for which is_stop() holds, within a fraction of a second also
/// where the database is silent: in a long statement, or behind a lock.
std::unique_ptr<Source> open_source(const SourceSpec& spec,
                                    const std::vector<ColumnRequest>& wanted,
                                    StopFlag stop = nullptr);

/// The schema alone, for `peek` and for checking a job.
Schema read_schema(const SourceSpec& spec);

/// A column of a table that we make.
struct NewColumn {
  std::string name;
  ColumnType type = ColumnType::float64;
  std::string declared;      ///< overrides the source's own word: "jsonb"
  bool primary_key = false;  ///< at most one
};

/// Fills a new table. Nothing of it is seen by others before finish();
/// destroyed without finish(), it leaves what was there before.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  /// The block has one column for each NewColumn, in order.
  virtual void write(const Block& block) = 0;
  virtual void finish() = 0;
};

/// Makes the table `spec.table`. An existing one is an Error(request) unless
/// `replace`; a missing SQLite file is made.
std::unique_ptr<TableWriter> create_table(const SourceSpec& spec,
                                          const std::vector<NewColumn>& columns,
                                          bool replace);

}  // namespace penstock
