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
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/base/sync.h"

namespace penstock::hdf5 {

/// A chunk without its filters.
struct DecodedChunk {
  Bytes bytes;
  /// Of a value, where its bytes are still apart (undo_shuffle); 0: they are
  /// not.
  std::size_t apart = 0;
  std::string why = {};  ///< what is wrong with it; its bytes are zeros then
};

/// The memory of a few chunks that nobody needs any more, for those that come
/// next: given back to the system and taken again, it would cost a fault for
/// each page. Thread-safe.
class SpareBuffers {
 public:
  Bytes take(std::size_t bytes);
  void give(Bytes&& buffer) noexcept;

 private:
  static constexpr std::size_t kMost = std::size_t{8} << 20;

  Mutex mutex_;
  std::vector<Bytes> buffers_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;
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
  /// needed again. Throws what `decode` throws. Null where it shall not `wait`
  /// and another thread decodes it.
  Chunk get(Key key, bool keep, const std::function<Chunk()>& decode,
            bool wait = true);

  /// Lets a chunk go, if it is there: all of it was used.
  void forget(Key key);
  /// A chunk of so many bytes, which are anything, for `decode` to fill.
  std::shared_ptr<DecodedChunk> empty_chunk(std::size_t bytes) const;

  std::size_t budget() const { return budget_; }
  /// How many were decoded since the beginning.
  std::int64_t decoded() const { return decoded_; }

 private:
  struct Place {
    Chunk chunk;  // null: someone decodes it
    std::list<Key>::iterator used;
  };
  void make_room(std::size_t bytes) PENSTOCK_REQUIRES(mutex_);
  void keep_chunk(const Key& key, const Chunk& chunk);

  const std::size_t budget_;
  /// Chunks outlive us.
  const std::shared_ptr<SpareBuffers> spare_ = std::make_shared<SpareBuffers>();
  Mutex mutex_;
  Condition arrived_;
  std::map<Key, Place> places_ PENSTOCK_GUARDED_BY(mutex_);
  std::list<Key> used_ PENSTOCK_GUARDED_BY(mutex_);  // the last one first
  std::size_t bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::atomic<std::int64_t> decoded_{0};  // a count alone: nothing follows
};

}  // namespace penstock::hdf5
