#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/sources/files/bad_rows.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/files/row_file.h"
#include "penstock/sources/hdf5/decoded_chunks.h"
#include "penstock/sources/hdf5/filters/filters.h"
#include "penstock/sources/hdf5/indexed_file.h"
#include "penstock/sources/stop.h"

namespace penstock::hdf5 {

/// A data set as rows: along its first dimension, or, as MATLAB has it, along
/// its last one, with all dimensions in reverse.
struct RowView {
  const IndexedFile* file = nullptr;
  const DataSet* set = nullptr;
  bool reversed = false;

  std::size_t axis() const { return reversed ? set->dims.size() - 1 : 0; }
  std::int64_t rows() const { return set->dims[axis()]; }
  /// Values of a row.
  std::int64_t values() const;
  std::int64_t row_bytes() const { return values() * set->type.bytes; }
  /// The shape of a row.
  std::vector<std::int64_t> item() const;
};

using files::BadRows;

/// Values as they lie in the file, in C order of rows.
struct RawRows {
  Bytes bytes;
  std::vector<BadRows> bad = {};
};

/// Reads rows of data sets by pread, and undoes their filters. Belongs to one
/// thread at a time.
class RawReader {
 public:
  RawReader(std::shared_ptr<DecodedChunks> chunks, StopFlag stop)
      : chunks_(std::move(chunks)), stop_(stop) {}

  /// Decoded chunks are needed again, wherever rows are read.
  void keep_chunks(bool yes) { keep_ = yes; }
  RawRows read(const RowView& view, std::int64_t first, std::int64_t rows);
  /// Puts rows, whose numbers from `first` on ascend, to `places`, `to` being
  /// the first of them. `no`: read() is to be used, whatever was written;
  /// `later`, where it shall not `wait`: others decode one of their chunks.
  files::Placed place(const RowView& view, std::int64_t first,
                      std::span<const std::int64_t> rows,
                      std::span<const std::size_t> places, std::byte* to,
                      bool wait);
  /// Chunks that place() decodes are used up row by row, in this epoch alone:
  /// so what can be done for a row is left until then.
  void decode_late(bool yes) { late_ = yes; }
  /// Lets go of decoded chunks that hold some of these rows and no others.
  void forget(const RowView& view, std::int64_t first, std::int64_t rows);
  /// Bytes of a file at a place that an index did not name. What is wrong;
  /// empty: nothing.
  std::string read_bytes(const IndexedFile& file, std::int64_t at,
                         std::span<char> to);

 private:
  void read_contiguous(const RowView& view, std::int64_t first,
                       std::int64_t rows, RawRows& out);
  void read_chunked(const RowView& view, std::int64_t first, std::int64_t rows,
                    RawRows& out);
  void read_mapped(const RowView& view, std::int64_t first, std::int64_t rows,
                   RawRows& out);
  DecodedChunks::Chunk chunk_of(const RowView& view, std::int64_t chunk,
                                bool keep);
  DecodedChunks::Chunk chunk_for_rows(const RowView& view, std::int64_t chunk,
                                      bool wait);
  std::shared_ptr<DecodedChunk> decoded(const RowView& view, std::int64_t chunk,
                                        bool late);
  DecodedChunks::Chunk whole(DecodedChunks::Chunk chunk) const;

  const std::shared_ptr<DecodedChunks> chunks_;
  const StopFlag stop_;
  bool keep_ = true, late_ = false;
  ChunkDecoder decoder_;
  std::string stored_;
  std::list<std::pair<const IndexedFile*, Descriptor>> open_;
};

}  // namespace penstock::hdf5
