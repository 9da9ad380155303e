#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/file_stamp.h"
#include "penstock/sources/files/packed_numbers.h"
#include "penstock/sources/npy/npy_header.h"

namespace penstock::zarr {

/// A step that makes bytes of bytes.
struct Codec {
  enum class Kind : std::uint8_t {
    gzip,
    zlib,
    zstd,
    lz4,
    blosc,
    crc32c,
    shuffle
  };
  Kind kind;
  std::size_t element = 1;  ///< of shuffle
};

/// How an array lies in chunks: each a file, or a part of a file (a shard).
struct ZarrArray {
  std::string place;          ///< its folder
  npy::ArrayLayout layout;    ///< info: name, dtype, shape; swapped
  Shape chunk;                ///< what is encoded together
  Shape shard;                ///< what a file holds; as `chunk` without shards
  std::vector<Codec> codecs;  ///< of chunks, in the order of decoding
  std::vector<Codec> index_codecs;  ///< of a shard's index
  bool sharded = false;             ///< files are shards, with an index each
  bool index_at_start = false;
  bool index_swapped = false;  ///< its numbers are not in our byte order
  std::vector<std::size_t>
      order;                    ///< of dimensions in a chunk, outermost first
  std::string prefix;           ///< of names of files: "c/", ""
  char separator = '.';         ///< between the numbers in them
  std::vector<std::byte> fill;  ///< a value where there is no chunk
  std::string fill_text;        ///< the same of ArrayItems::texts
  files::PackedNumbers packed = {};  ///< of numbers: what is in chunks
  /// Files that have changed since then are files.changed.
  std::int64_t opened_ns = file_clock_ns();

  std::size_t item_bytes() const;
};

/// The array whose metadata are in `folder`, of version 2 (.zarray, .zattrs) or
/// 3 (zarr.json); none where these are of a group. What cannot be read is
/// ArrayItems::unread. Throws Error(source), files.damaged.
std::optional<ZarrArray> read_array(const std::string& folder,
                                    const std::string& name);

/// True where a folder has metadata of an array or a group.
bool is_node(const std::string& folder);

}  // namespace penstock::zarr
