#include "penstock/sources/arrow/parquet_memory.h"

#include <parquet/metadata.h>
#include <parquet/types.h>

#include <algorithm>

// While a row group is read, each of its columns holds the bytes of the file,
// all of them or one buffer, and a page without its compression; and there are
// the rows of one batch, and of the one before that somebody still looks at.

namespace penstock::arrow_files {
namespace {

/// A batch that stays near the processor, and not too few rows for it.
constexpr double kBatchBytes = 8 << 20;
constexpr std::int64_t kLeastRows = 1024;
constexpr int kBatches = 2;
/// Writers cut pages at about 1 MiB; beside one there may be a dictionary.
constexpr double kPageBytes = 2 << 20;
/// Row groups whose bytes are no more than this are read at once.
constexpr double kMostStored = 16 << 20;

/// The footer may say anything.
double bounded(std::int64_t bytes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 46;
  return static_cast<double>(std::clamp<std::int64_t>(bytes, 0, kMost));
}

/// Bytes of a value in Arrow's layout, where that is known.
double least_width(parquet::Type::type type) {
  switch (type) {
    case parquet::Type::BOOLEAN:
      return 1;
    case parquet::Type::INT32:
    case parquet::Type::FLOAT:
      return 4;
    case parquet::Type::BYTE_ARRAY:
      return 16;
    default:
      return 8;
  }
}

}  // namespace

ParquetReading reading_of(const parquet::FileMetaData& file,
                          const std::vector<int>& leaves) {
  ParquetReading how;
  int largest = -1;
  double rows = 0;
  for (int group = 0; group < file.num_row_groups(); ++group)
    if (const double here = bounded(file.RowGroup(group)->num_rows());
        here > rows) {
      rows = here;
      largest = group;
    }
  if (largest < 0) return how;
  const auto group = file.RowGroup(largest);
  double stored = 0, pages = 0, width = 0;
  for (int leaf : leaves) {
    const auto column = group->ColumnChunk(leaf);
    const double plain = bounded(column->total_uncompressed_size());
    stored += bounded(column->total_compressed_size());
    pages += std::min(plain, kPageBytes);
    width += std::max(plain / rows, least_width(column->type()));
  }
  how.batch_rows = static_cast<std::int64_t>(std::clamp(
      kBatchBytes / std::max(width, 1.0), static_cast<double>(kLeastRows),
      static_cast<double>(how.batch_rows)));
  how.by_page = stored > kMostStored;
  if (how.by_page)
    stored = std::min(stored, static_cast<double>(leaves.size()) *
                                      static_cast<double>(kStreamBuffer) +
                                  kPageBytes);
  const double batches =
      kBatches * width * std::min(rows, static_cast<double>(how.batch_rows));
  how.memory.scanning = static_cast<std::size_t>(stored + pages + batches);
  how.memory.by_position =
      static_cast<std::size_t>(stored + pages + width * rows);
  return how;
}

}  // namespace penstock::arrow_files
