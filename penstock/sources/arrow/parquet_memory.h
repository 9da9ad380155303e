#pragma once

#include <cstdint>
#include <vector>

#include "penstock/sources/source.h"

namespace parquet {
class FileMetaData;
}

namespace penstock::arrow_files {

/// What is read of a column at a time, where its bytes come page by page.
inline constexpr std::int64_t kStreamBuffer = 64 << 10;

/// How row groups are read, by how large they are.
struct ParquetReading {
  std::int64_t batch_rows = 1 << 16;
  /// The bytes of a column come as its pages are needed: else all of those in a
  /// row group are held until it is read.
  bool by_page = false;
  ReaderMemory memory = {};
};

/// Of a file whose `leaves` (columns of Parquet's own schema) are read. What is
/// said of memory is that of the row group with most rows, from the sizes that
/// the footer has; dictionaries that shorten texts are not seen there. Throws
/// parquet::ParquetException.
ParquetReading reading_of(const parquet::FileMetaData& file,
                          const std::vector<int>& leaves);

}  // namespace penstock::arrow_files
