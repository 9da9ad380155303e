#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::hdf5 {

/// What the index program and the engine say to each other, over two pipes.
///
/// To the program: the length of a path (uint32) and its bytes. From it:
/// frames, in the order
///   progress*  index  chunks*  done     or     progress*  failed  done
/// where the index is JSON, and the chunks are those of each chunked data set
/// of the index, in its order.
enum class Frame : std::uint8_t {
  progress = 'p',  ///< no bytes; it is alive and reads
  index = 'i',     ///< JSON: see index.h
  chunks = 'c',    ///< ChunkPlace for each chunk, row-major over the grid
  failed = 'f',    ///< JSON: {"code", "why", "next"}
  done = 'd',      ///< no bytes
};

struct FrameHead {
  Frame kind;
  std::uint8_t unused[7];
  std::uint64_t bytes;
};
static_assert(sizeof(FrameHead) == 16);

/// Where a chunk lies in its file; `bytes` is 0 where it was never written.
struct ChunkPlace {
  std::uint64_t offset;   ///< from the beginning of the file
  std::uint32_t bytes;    ///< as stored, filtered
  std::uint32_t skipped;  ///< bit i: filter i was not applied to this chunk
};
static_assert(sizeof(ChunkPlace) == 16);

/// No chunk of a data set is larger when it is decoded.
inline constexpr std::int64_t kMostChunkBytes = std::int64_t{1} << 30;
/// No data set has more chunks.
inline constexpr std::int64_t kMostChunks = std::int64_t{1} << 26;

}  // namespace penstock::hdf5
