#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <cmath>

#include "penstock/base/name_index.h"
#include "penstock/sources/arrow/arrow_column.h"
#include "penstock/sources/arrow/arrow_error.h"
#include "penstock/sources/arrow/arrow_file.h"
#include "penstock/sources/arrow/arrow_memory.h"
#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/arrow/declared_classes.h"
#include "penstock/sources/arrow/parquet_memory.h"
#include "penstock/sources/arrow/stored_input.h"

// A row group is a chunk. Its columns come in batches of some thousand rows, so
// that a scan of a large one needs no more memory than that and the pages that
// it is at. Threads are ours: Arrow uses none.

namespace penstock::arrow_files {
namespace {

[[noreturn]] void fail_of(const parquet::ParquetException& error,
                          const files::DataFile& file,
                          const std::string& where) {
  auto* of_arrow = dynamic_cast<const parquet::ParquetStatusException*>(&error);
  fail(of_arrow != nullptr ? of_arrow->status()
                           : arrow::Status::IOError(error.what()),
       file, where);
}

std::unique_ptr<parquet::arrow::FileReader> open_file(
    const files::DataFile& file,
    std::shared_ptr<parquet::FileMetaData> metadata,
    const ParquetReading& reading = {}) {
  std::shared_ptr<arrow::io::RandomAccessFile> input =
      file.store == nullptr
          ? checked(arrow::io::ReadableFile::Open(file.path, memory()), file,
                    "")
          : stored_input(file);
  parquet::arrow::FileReaderBuilder builder;
  parquet::ReaderProperties properties(memory());
  properties.set_page_checksum_verification(true);
  if (reading.by_page && file.store == nullptr) {
    properties.enable_buffered_stream();
    properties.set_buffer_size(kStreamBuffer);
  }
  check(builder.Open(std::move(input), properties, std::move(metadata)), file,
        "its footer");
  parquet::ArrowReaderProperties how;
  how.set_use_threads(false);
  how.set_pre_buffer(file.store != nullptr);  // few requests, and large ones
  how.set_batch_size(reading.batch_rows);
  // Nanoseconds would end in the years 1677 and 2262.
  how.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);
  builder.memory_pool(memory());
  builder.properties(how);
  return checked(builder.Build(), file, "its footer");
}

void add_leaves(const parquet::arrow::SchemaField& field,
                std::vector<int>& leaves) {
  if (field.column_index >= 0) leaves.push_back(field.column_index);
  for (const parquet::arrow::SchemaField& child : field.children)
    add_leaves(child, leaves);
}

std::string_view name_of_field(const parquet::arrow::SchemaField& field) {
  return field.field->name();
}

/// The leaves of Parquet's schema that make up a column; `top` finds its
/// columns. Parquet stores leaves of a schema's tree, each as a column of its
/// own; a struct, list or map column is all leaves below it.
std::vector<int> leaves_of(const parquet::arrow::SchemaManifest& manifest,
                           const NameIndex& top,
                           const std::vector<std::string>& names) {
  const parquet::arrow::SchemaField* found = nullptr;
  for (const std::string& name : names) {
    const auto& fields =
        found == nullptr ? manifest.schema_fields : found->children;
    const std::optional<std::size_t> at =
        found == nullptr ? top.find(name)
                         : NameIndex(fields, name_of_field).find(name);
    if (!at) return {};
    found = &fields[*at];
  }
  std::vector<int> leaves;
  add_leaves(*found, leaves);
  return leaves;
}

class ParquetFile final : public files::RowFile,
                          public std::enable_shared_from_this<ParquetFile> {
 public:
  ParquetFile(const files::DataFile& file, StopFlag stop);

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;
  files::ChunkBounds bounds(std::int64_t chunk,
                            std::size_t column) const override;
  ReaderMemory reader_memory(
      const std::vector<std::size_t>& columns) const override {
    return reading(leaves(columns)).memory;
  }

 private:
  friend class ParquetReader;
  /// The classes of a column, in the order of the dictionary that all row
  /// groups have; none where they have no such.
  std::vector<std::string> declared_classes(std::size_t column,
                                            StopFlag stop) const;
  /// Those of Parquet's schema that make up these columns, each once.
  std::vector<int> leaves(const std::vector<std::size_t>& columns) const;
  ParquetReading reading(const std::vector<int>& leaves) const;
  std::string range(std::int64_t group) const {
    return group_name(group, chunk_begin(group), chunk_end(group));
  }

  const files::DataFile file_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<ArrowColumn> columns_;
  std::vector<std::vector<int>> leaves_;  // by column
};

class ParquetReader final : public files::ChunkReader {
 public:
  ParquetReader(std::shared_ptr<const ParquetFile> file,
                std::vector<std::size_t> columns)
      : file_(std::move(file)),
        columns_(std::move(columns)),
        leaves_(file_->leaves(columns_)),
        reading_(file_->reading(leaves_)) {}

  void read(std::int64_t group, const files::PieceSink& sink) override {
    if (columns_.empty()) {
      Block block;
      block.rows = file_->chunk_end(group) - file_->chunk_begin(group);
      sink(std::move(block));
      return;
    }
    const files::DataFile& data = file_->file_;
    const std::string where = file_->range(group);
    try {
      if (reader_ == nullptr)
        reader_ = open_file(data, file_->metadata_, reading_);
      auto batches = checked(
          reader_->GetRecordBatchReader({static_cast<int>(group)}, leaves_),
          data, where);
      for (;;) {
        auto batch = checked(batches->Next(), data, where);
        if (batch == nullptr || !sink(block_of(*batch, where))) return;
      }
    } catch (const parquet::ParquetException& error) {
      fail_of(error, data, where);
    }
  }

 private:
  Block block_of(const arrow::RecordBatch& batch, const std::string& where) {
    Block block;
    block.rows = batch.num_rows();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const ArrowColumn& column = file_->columns_[columns_[c]];
      auto array = array_of(batch, column.names, file_->file_, where);
      block.columns.push_back(column_from(array, column.column, c,
                                          block.problems, file_->file_, where));
    }
    return block;
  }

  const std::shared_ptr<const ParquetFile> file_;
  const std::vector<std::size_t> columns_;
  const std::vector<int> leaves_;
  const ParquetReading reading_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
};

ParquetFile::ParquetFile(const files::DataFile& file, StopFlag stop)
    : file_(file) {
  const std::string where = "its footer";
  try {
    auto reader = open_file(file_, nullptr);
    metadata_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    check(reader->GetSchema(&schema), file_, where);
    columns_ = columns_of(*schema, file_, facts_.left_out);
    const NameIndex top(reader->manifest().schema_fields, name_of_field);
    for (const ArrowColumn& column : columns_)
      leaves_.push_back(leaves_of(reader->manifest(), top, column.names));
    std::int64_t rows = 0;
    for (int group = 0; group < metadata_->num_row_groups(); ++group) {
      const std::int64_t more = metadata_->RowGroup(group)->num_rows();
      if (more < 0 || more > (std::int64_t{1} << 48))
        refuse_damaged(file_, where,
                       "row group " + std::to_string(group) + " declares " +
                           std::to_string(more) + " rows, expected 0 to 2^48");
      facts_.chunk_ends.push_back(rows += more);
    }
    for (std::size_t at = 0; at < columns_.size(); ++at) {
      if (columns_[at].ordered)
        columns_[at].column.values = declared_classes(at, stop);
      facts_.columns.push_back(columns_[at].column);
    }
  } catch (const parquet::ParquetException& error) {
    fail_of(error, file_, where);
  }
}

/// Whether the values of a column chunk are all in its dictionary.
bool has_only_dictionary(const parquet::ColumnChunkMetaData& chunk) {
  const std::vector<parquet::PageEncodingStats>& pages = chunk.encoding_stats();
  return !pages.empty() &&
         std::ranges::all_of(pages, [](const parquet::PageEncodingStats& page) {
           return page.page_type == parquet::PageType::DICTIONARY_PAGE ||
                  page.encoding == parquet::Encoding::RLE_DICTIONARY ||
                  page.encoding == parquet::Encoding::PLAIN_DICTIONARY;
         });
}

// Of each row group one row is read, with the dictionary before it; or all,
// where only they tell whether it holds all values.
std::vector<std::string> ParquetFile::declared_classes(std::size_t column,
                                                       StopFlag stop) const {
  if (leaves_[column].size() != 1) return {};
  const int leaf = leaves_[column][0];
  auto one = open_file(file_, metadata_, {.batch_rows = 1, .by_page = true});
  auto all = open_file(file_, metadata_, {.by_page = true});
  SharedDictionary dictionary;
  for (int group = 0; group < metadata_->num_row_groups(); ++group) {
    auto rows = metadata_->RowGroup(group);
    auto chunk = rows->ColumnChunk(leaf);
    if (rows->num_rows() == 0) continue;
    if (!chunk->has_dictionary_page()) return {};
    const bool first = has_only_dictionary(*chunk);
    const std::string where = range(group);
    auto batches =
        checked((first ? one : all)->GetRecordBatchReader({group}, {leaf}),
                file_, where);
    for (bool more = true; more; more = !first) {
      end_if_stopped(stop);
      auto batch = checked(batches->Next(), file_, where);
      if (batch == nullptr) break;
      if (!dictionary.add(
              *array_of(*batch, columns_[column].names, file_, where)))
        return {};
    }
  }
  return dictionary.classes();
}

std::vector<int> ParquetFile::leaves(
    const std::vector<std::size_t>& columns) const {
  std::vector<int> leaves;
  for (std::size_t column : columns)
    leaves.insert(leaves.end(), leaves_[column].begin(), leaves_[column].end());
  std::ranges::sort(leaves);
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  return leaves;
}

ParquetReading ParquetFile::reading(const std::vector<int>& leaves) const {
  try {
    return reading_of(*metadata_, leaves);
  } catch (const parquet::ParquetException&) {
    return {};  // reading the group says what is wrong
  }
}

std::unique_ptr<files::ChunkReader> ParquetFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<ParquetReader>(shared_from_this(), columns);
}

template <class Type>
void set_bounds(const parquet::Statistics& of, files::ChunkBounds& bounds) {
  const auto& typed = static_cast<const parquet::TypedStatistics<Type>&>(of);
  bounds.min = static_cast<long double>(typed.min());
  bounds.max = static_cast<long double>(typed.max());
  bounds.known = !std::isnan(bounds.min) && !std::isnan(bounds.max);
}

// Statistics are those of the column chunk (parquet.thrift, Statistics). They
// are used only where the order of the physical type is the order of the
// values: not for unsigned integers, whose statistics old writers computed as
// signed, and not where NaN makes bounds meaningless.
files::ChunkBounds ParquetFile::bounds(std::int64_t chunk,
                                       std::size_t column) const {
  files::ChunkBounds bounds;
  const files::FileColumn& of = facts_.columns[column];
  // Of unsigned numbers the order is another one, and times are scaled.
  if (leaves_[column].size() != 1 || of.timestamp ||
      of.type.kind != ColumnKind::number || of.declared.starts_with("uint") ||
      columns_[column].names.size() != 1)
    return bounds;
  try {
    auto group = metadata_->RowGroup(static_cast<int>(chunk));
    auto statistics = group->ColumnChunk(leaves_[column][0])->statistics();
    if (statistics == nullptr || !statistics->HasMinMax()) return bounds;
    const bool whole = of.declared.starts_with("int");
    const bool real = of.declared == "float" || of.declared == "double";
    if (statistics->physical_type() == parquet::Type::INT32 && whole)
      set_bounds<parquet::Int32Type>(*statistics, bounds);
    else if (statistics->physical_type() == parquet::Type::INT64 && whole)
      set_bounds<parquet::Int64Type>(*statistics, bounds);
    else if (statistics->physical_type() == parquet::Type::FLOAT && real)
      set_bounds<parquet::FloatType>(*statistics, bounds);
    else if (statistics->physical_type() == parquet::Type::DOUBLE && real)
      set_bounds<parquet::DoubleType>(*statistics, bounds);
  } catch (const parquet::ParquetException&) {
    bounds.known = false;  // reading the group says what is wrong
  }
  return bounds;
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_parquet(
    const SourceSpec&, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  return files::open_each(data, stop, [&](const files::DataFile& file) {
    return std::make_shared<ParquetFile>(file, stop);
  });
}

}  // namespace penstock::arrow_files
