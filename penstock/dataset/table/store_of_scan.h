#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/scan_parts.h"

namespace penstock {

/// Begins a store of rows with the array that these are packed into: "rows", or
/// "runs/0", after "rows" without any, where they are runs of one field alone.
void begin_rows(StoreWriter& store, bool runs_alone);

/// The beginning of a store, the runs of one field, which is written while rows
/// are scanned: partition by partition, in their order, by whichever thread has
/// just scanned the one that comes next. Thread-safe.
class StoreOfScan {
 public:
  /// `encoder` needs no statistics; the field's elements have so many bytes.
  /// Throws Error(request) where the file cannot be made.
  StoreOfScan(FileSystem& files, const std::filesystem::path& path,
              RowEncoder encoder, std::size_t element_bytes);
  ~StoreOfScan();

  using Written = std::function<void(ScannedPart)>;
  /// The rows of the partition of this number, of 0, 1 and so on. `written`
  /// gets them back once they are, on this thread or on another one's call.
  /// Throws as StoreWriter::append() does; nothing is written after that.
  void add(std::int64_t partition, ScannedPart part, const Written& written);

  /// Once all have been added: how long the runs are, and what writes the rest.
  std::shared_ptr<RunTable> lengths() const { return lengths_; }
  StoreWriter& writer() { return *writer_; }

 private:
  void write(const ScannedPart& part);

  // Of the thread that writes.
  std::unique_ptr<StoreWriter> writer_;
  RowEncoder encoder_;
  const std::shared_ptr<RunTable> lengths_;
  std::vector<Values> runs_;  // of a block

  Mutex mutex_;
  bool writes_ PENSTOCK_GUARDED_BY(mutex_) = false;  // a thread does
  std::int64_t next_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::map<std::int64_t, ScannedPart> waiting_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
