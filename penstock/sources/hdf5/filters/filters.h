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
  /// empty: nothing. With `apart`, a shuffle that was applied first may be left
  /// to take_together(): it is then the bytes of a value, else 0.
  std::string decode(const std::vector<Filter>& filters, std::uint32_t skipped,
                     std::span<const std::byte> stored,
                     std::span<std::byte> out, std::size_t* apart = nullptr);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

/// Writes `values` values from `first` on, of those of a chunk whose bytes are
/// still apart.
void take_together(std::span<const std::byte> chunk, std::size_t apart,
                   std::size_t first, std::size_t values, std::byte* out);

}  // namespace penstock::hdf5
