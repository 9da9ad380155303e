#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/sync.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// NULL, a number or a text; a uuid is a text of 16 bytes.
using FakeCell =
    std::variant<std::nullptr_t, std::int64_t, double, std::string>;

/// A table in memory, for tests of everything above the sources. Column 0 is
/// the primary key; rows are in order of arrival. ReadAs::value takes the type
/// that `declared` names: "int64", "float64" or, for all else, text.
struct FakeTable {
  ColumnType key = ColumnType::int64;
  Schema schema;
  std::vector<std::vector<FakeCell>> rows;
  std::string version = {};  ///< in its identity; empty: it does not know
};

/// What `counting_table` makes.
struct CountingOptions {
  std::int64_t rows = 1000;
  ColumnType key = ColumnType::int64;
  bool scrambled = false;     ///< arrival order is unlike key order
  std::int64_t bad_row = -1;  ///< "value" of this row holds a text
};

/// A table whose every cell follows from the row's number i, which is also
/// the rank of its key:
///   id     the key: 10 * i, "row-0000i", or a uuid that ends in i
///   value  i as a float64
///   group  "group-(i / 7)"
///   items  a JSON list of 1 + i % 5 objects {"a": i, "b": j}
FakeTable counting_table(const CountingOptions& options);
/// The key of row i of a counting table.
FakeCell counting_key(ColumnType key, std::int64_t i);

/// The trouble that a fake makes on purpose.
struct FakeTrouble {
  int most_partitions = 8;
  std::int64_t fail_at_read = 0;   ///< the n-th read of all readers; 0: never
  bool reads_fail = false;         ///< all of them
  std::int64_t fail_at_block = 0;  ///< the n-th block of all scans; 0: never
  bool global_lock = false;        ///< one lock for all fakes of the process,
                                   ///< held while a block is filled
  double seconds_per_call = 0;     ///< slept per read and per scanned block
  Clock* clock = nullptr;          ///< null: the wall clock
};

/// What was asked of a fake so far, and what is still held.
struct FakeCounts {
  std::atomic<std::int64_t> reads{0};
  std::atomic<std::int64_t> blocks{0};
  std::atomic<std::int64_t> rows{0};  ///< handed out, by scans and reads
  std::atomic<std::int64_t> readers_open{0};
  std::atomic<std::int64_t> snapshots_open{0};
};

/// A source that counts and fails as told. Thread-safe; outlives its readers
/// no more than any other source does.
class FakeSource : public Source {
 public:
  FakeSource(FakeTable table, const std::vector<ColumnRequest>& requests,
             FakeTrouble trouble = {});

  RowCount count() const override;
  std::vector<Partition> partitions(int readers) override;
  std::unique_ptr<Reader> open_reader() override;

  const FakeCounts& counts() const { return shared_->counts; }
  /// As another program would: passes that have begun do not see it.
  void add_row(std::vector<FakeCell> row);
  void change_row(std::int64_t at, std::vector<FakeCell> row);
  void remove_row(std::int64_t at);

  /// What readers share with their source; see fake_source.cpp.
  struct Shared {
    Mutex mutex;
    std::shared_ptr<const FakeTable> table PENSTOCK_GUARDED_BY(mutex);
    std::vector<std::size_t> columns;  // by request
    std::vector<ColumnType> types;
    FakeTrouble trouble;
    FakeCounts counts;

    std::shared_ptr<const FakeTable> now();
  };

 private:
  template <class Change>
  void change(Change change);

  std::shared_ptr<Shared> shared_;
};

}  // namespace penstock
