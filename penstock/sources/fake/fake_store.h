#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

/// The trouble that a fake store makes on purpose.
struct FakeStoreTrouble {
  std::int64_t chunk_rows = 16;   ///< 0: rows are read one by one
  bool global_lock = false;       ///< fails where two readers are inside
  bool tells_lengths = true;      ///< of texts, binary and lists
  ReaderMemory reader = {};       ///< what it says that a reader takes
  std::int64_t fail_at_read = 0;  ///< the n-th read of all readers; 0: never
  /// Called whenever a reader is opened. May be empty.
  std::function<void()> opening = {};
  /// Called in every read, while the reader is inside. May be empty.
  std::function<void()> reading = {};
  /// Changes each block before it is given.
  std::function<void(Block&)> spoil = {};
};

/// What was asked of a fake store so far.
struct FakeStoreCounts {
  std::atomic<std::int64_t> reads{0};
  std::atomic<std::int64_t> chunk_reads{0};
  std::atomic<std::int64_t> rows{0};
  std::atomic<std::int64_t> readers_open{0};
};

/// Rows by position in memory, in chunks, for tests of everything above the
/// sources. A reader keeps the last chunk that it has read. Thread-safe.
class FakeStore : public Source {
 public:
  /// `names[c]` is the name of column c of `rows`.
  FakeStore(std::vector<std::string> names, Block rows,
            const std::vector<ColumnRequest>& requests,
            FakeStoreTrouble trouble = {});

  RowCount count() const override;
  bool lengths(std::size_t request, std::int64_t first,
               std::span<std::int32_t> out) const override;
  std::unique_ptr<Reader> open_reader() override;

  const FakeStoreCounts& counts() const;

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;
};

/// A store whose row i holds
///   value    i as a float64
///   samples  a list of 1 + i % 5 float32: i, i + 1, ...
///   packed   the bytes of i % 7 letters
std::unique_ptr<FakeStore> counting_store(
    std::int64_t rows, const std::vector<ColumnRequest>& requests,
    FakeStoreTrouble trouble = {});

}  // namespace penstock
