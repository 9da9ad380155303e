#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/sources/hdf5/index.h"

namespace penstock::hdf5 {

/// Why a pipeline cannot be undone here, and what to do about it; both empty:
/// it can. By the filters' ids and names.
struct FilterFault {
  std::string why, next;
};
FilterFault fault_of(const std::vector<Filter>& filters);

/// Undoes the filters of chunks. Belongs to one thread at a time; no lock is
/// held while it works.
class ChunkDecoder {
 public:
  ChunkDecoder();
  ~ChunkDecoder();
  ChunkDecoder(const ChunkDecoder&) = delete;
  ChunkDecoder& operator=(const ChunkDecoder&) = delete;

  /// Writes the chunk, of just `out.size()` bytes, from its `stored` bytes;
  /// bit i of `skipped`: filter i was not applied. What is wrong with it;
  /// empty: nothing.
  std::string decode(const std::vector<Filter>& filters, std::uint32_t skipped,
                     std::span<const std::byte> stored,
                     std::span<std::byte> out);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace penstock::hdf5
