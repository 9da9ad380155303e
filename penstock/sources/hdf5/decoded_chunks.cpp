#include "penstock/sources/hdf5/decoded_chunks.h"

#include <new>

namespace penstock::hdf5 {

Bytes SpareBuffers::take(std::size_t bytes) {
  {
    Lock lock(mutex_);
    // The last one is the one most likely to be in the processor's cache.
    for (auto at = buffers_.rbegin(); at != buffers_.rend(); ++at)
      if (at->size() == bytes) {
        Bytes found = std::move(*at);
        buffers_.erase(std::next(at).base());
        bytes_ -= bytes;
        return found;
      }
  }
  Bytes fresh;
  fresh.resize(bytes);
  return fresh;
}

void SpareBuffers::give(Bytes&& buffer) noexcept try {
  if (buffer.size() > kMost / 2) return;  // faults are few beside its bytes
  Lock lock(mutex_);
  while (!buffers_.empty() && bytes_ + buffer.size() > kMost) {
    bytes_ -= buffers_.front().size();
    buffers_.erase(buffers_.begin());
  }
  const std::size_t bytes = buffer.size();
  buffers_.push_back(std::move(buffer));
  bytes_ += bytes;
} catch (const std::bad_alloc&) {
  // It goes back to the system.
}

// The deleter shares the spare buffers, not the cache: batches may hold chunks
// longer than the source lives.
std::shared_ptr<DecodedChunk> DecodedChunks::empty_chunk(
    std::size_t bytes) const {
  auto owned = std::make_unique<DecodedChunk>();
  owned->bytes = spare_->take(bytes);
  return {owned.release(), [spare = spare_](DecodedChunk* chunk) {
            spare->give(std::move(chunk->bytes));
            delete chunk;
          }};
}

void DecodedChunks::make_room(std::size_t bytes) {
  while (bytes_ + bytes > budget_ && !used_.empty()) {
    auto oldest = places_.find(used_.back());
    bytes_ -= oldest->second.chunk->bytes.size();
    places_.erase(oldest);
    used_.pop_back();
  }
}

void DecodedChunks::forget(Key key) {
  Chunk last;  // is given back without the lock
  Lock lock(mutex_);
  auto found = places_.find(key);
  if (found == places_.end() || found->second.chunk == nullptr) return;
  last = std::move(found->second.chunk);
  bytes_ -= last->bytes.size();
  used_.erase(found->second.used);
  places_.erase(found);
}

// Invariants, whenever the mutex is free:
//   1. A place without a chunk belongs to just one thread, which is decoding;
//      its `used` is the end of the list, and no other thread touches it.
//   2. `used_` has the keys of all places with a chunk, each once, and `used`
//      of a place is its own entry.
//   3. `bytes_` is the sum of these chunks, and at most `budget_`.
//   4. A place without a chunk is filled or erased by its thread, whatever
//      `decode` does, and arrived_ is signalled then. Otherwise those who wait
//      would wait for ever.
//
// A waiter looks its key up again each time it wakes: the chunk may have come,
// may have been evicted since, or may never come because it exceeds the budget
// or failed. In the last three cases the waiter decodes the chunk itself, which
// also gives each of them its own exception.
DecodedChunks::Chunk DecodedChunks::get(Key key, bool keep,
                                        const std::function<Chunk()>& decode,
                                        bool wait) {
  {
    Lock lock(mutex_);
    for (;;) {
      auto found = places_.find(key);
      if (found == places_.end()) break;
      if (found->second.chunk != nullptr) {
        used_.splice(used_.begin(), used_, found->second.used);
        return found->second.chunk;
      }
      if (!wait) return nullptr;
      arrived_.wait(mutex_);
    }
    if (keep) places_[key] = {nullptr, used_.end()};
  }
  Chunk chunk;
  try {
    chunk = decode();
    ++decoded_;
    if (keep) keep_chunk(key, chunk);
  } catch (...) {
    Lock lock(mutex_);
    if (keep) places_.erase(key);
    arrived_.notify_all();
    throw;
  }
  return chunk;
}

void DecodedChunks::keep_chunk(const Key& key, const Chunk& chunk) {
  Lock lock(mutex_);
  const std::size_t bytes = chunk->bytes.size();
  if (bytes > budget_) {
    places_.erase(key);
  } else {
    make_room(bytes);
    used_.push_front(key);
    places_[key] = {chunk, used_.begin()};
    bytes_ += bytes;
  }
  arrived_.notify_all();
}

}  // namespace penstock::hdf5
