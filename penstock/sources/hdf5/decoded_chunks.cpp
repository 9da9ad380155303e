#include "penstock/sources/hdf5/decoded_chunks.h"

namespace penstock::hdf5 {

void DecodedChunks::make_room(std::size_t bytes) {
  while (bytes_ + bytes > budget_ && !used_.empty()) {
    auto oldest = places_.find(used_.back());
    bytes_ -= oldest->second.chunk->bytes.size();
    places_.erase(oldest);
    used_.pop_back();
  }
}

DecodedChunks::Chunk DecodedChunks::get(Key key, bool keep,
                                        const std::function<Chunk()>& decode) {
  {
    Lock lock(mutex_);
    for (;;) {
      auto found = places_.find(key);
      if (found == places_.end()) break;
      if (found->second.chunk != nullptr) {
        used_.splice(used_.begin(), used_, found->second.used);
        return found->second.chunk;
      }
      arrived_.wait(mutex_);
    }
    if (keep) places_[key] = {nullptr, used_.end()};
  }
  Chunk chunk;
  try {
    chunk = decode();
  } catch (...) {
    Lock lock(mutex_);
    if (keep) places_.erase(key);
    arrived_.notify_all();
    throw;
  }
  ++decoded_;
  if (!keep) return chunk;
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
  return chunk;
}

}  // namespace penstock::hdf5
