#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "penstock/base/bytes.h"
#include "penstock/base/sync.h"

namespace penstock::hdf5 {

/// A chunk without its filters.
struct DecodedChunk {
  Bytes bytes;
  std::string why = {};  ///< what is wrong with it; its bytes are zeros then
};

/// Decoded chunks that are needed again, up to a budget of bytes; those that
/// were not used for longest go first. Thread-safe.
///
/// Two threads that need a chunk decode it once: the second one waits. No lock
/// is held while a chunk is decoded.
class DecodedChunks {
 public:
  using Key = std::pair<const void*, std::int64_t>;  ///< a data set, a chunk
  using Chunk = std::shared_ptr<const DecodedChunk>;

  explicit DecodedChunks(std::size_t budget) : budget_(budget) {}

  /// The chunk, made by `decode` where it is not there. `keep`: it will be
  /// needed again. Throws what `decode` throws.
  Chunk get(Key key, bool keep, const std::function<Chunk()>& decode);

  std::size_t budget() const { return budget_; }
  /// How many were decoded since the beginning.
  std::int64_t decoded() const { return decoded_; }

 private:
  struct Place {
    Chunk chunk;  // null: someone decodes it
    std::list<Key>::iterator used;
  };
  void make_room(std::size_t bytes) PENSTOCK_REQUIRES(mutex_);

  const std::size_t budget_;
  Mutex mutex_;
  Condition arrived_;
  std::map<Key, Place> places_ PENSTOCK_GUARDED_BY(mutex_);
  std::list<Key> used_ PENSTOCK_GUARDED_BY(mutex_);  // the last one first
  std::size_t bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::atomic<std::int64_t> decoded_{0};  // a count alone: nothing follows
};

}  // namespace penstock::hdf5
