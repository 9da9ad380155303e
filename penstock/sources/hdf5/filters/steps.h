#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "penstock/base/bytes.h"
#include "penstock/sources/hdf5/index.h"

// One step of a pipeline each, undone: `in` becomes `out`, which is resized to
// what comes out, at most `most` bytes. They return what is wrong; empty:
// nothing. Hostile bytes are safe.
namespace penstock::hdf5 {

using In = std::span<const std::byte>;

/// HDF5's filter 2: the bytes of values apart, the first ones first. `out` has
/// as many bytes as `in`.
void undo_shuffle(In in, const Filter& filter, std::byte* out);
/// Filter 3: a checksum of four bytes behind the others (H5checksum.c).
std::string undo_fletcher32(In in, Bytes& out);
/// Filter 32000, h5py's: LibLZF's blocks, "Format" in its lzf_d.c.
std::string undo_lzf(In in, std::size_t most, Bytes& out);
/// Filter 32004: the size of all, the size of a block (big-endian, 8 and 4
/// bytes), then blocks, each behind its size (4 bytes).
std::string undo_lz4(In in, std::size_t most, Bytes& out);
/// Filter 32008: bits apart, in blocks of 8 n values, which are then those of
/// LZ4 or Zstandard.
std::string undo_bitshuffle(In in, const Filter& filter, std::size_t most,
                            Bytes& out);
/// Filter 32001.
std::string undo_blosc(In in, std::size_t most, Bytes& out);
/// Filter 32015.
std::string undo_zstd(In in, std::size_t most, Bytes& out);

/// Which of the libraries this plugin was built with.
bool has_lz4();
bool has_blosc();
bool has_zstd();

/// A block of LZ4, or a frame of Zstandard, that has just `out.size()` bytes.
bool block_of_lz4(In in, std::span<std::byte> out);
bool frame_of_zstd(In in, std::span<std::byte> out);

inline std::uint64_t big_endian(const std::byte* at, int bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < bytes; ++i)
    number = number << 8 | std::to_integer<std::uint64_t>(at[i]);
  return number;
}

}  // namespace penstock::hdf5
