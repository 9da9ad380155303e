#include "penstock/sources/arrow/test_writing.h"

#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>
#include <arrow/json/from_string.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>

namespace penstock::arrow_files {

std::string written(const std::shared_ptr<arrow::Table>& table, Written how) {
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  if (how.as == Written::As::parquet) {
    parquet::WriterProperties::Builder properties;
    properties.compression(how.compressed ? parquet::Compression::ZSTD
                                          : parquet::Compression::SNAPPY);
    auto with_types =
        parquet::ArrowWriterProperties::Builder().store_schema()->build();
    PARQUET_THROW_NOT_OK(
        parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink,
                                   how.chunk, properties.build(), with_types));
  } else {
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    if (how.compressed)
      options.codec =
          arrow::util::Codec::Create(arrow::Compression::ZSTD).ValueOrDie();
    options.emit_dictionary_deltas = how.as == Written::As::stream;
    auto writer =
        how.as == Written::As::file
            ? arrow::ipc::MakeFileWriter(sink, table->schema(), options)
            : arrow::ipc::MakeStreamWriter(sink, table->schema(), options);
    PARQUET_THROW_NOT_OK((*writer)->WriteTable(*table, how.chunk));
    PARQUET_THROW_NOT_OK((*writer)->Close());
  }
  return sink->Finish().ValueOrDie()->ToString();
}

std::shared_ptr<arrow::Array> array_from(
    const std::shared_ptr<arrow::DataType>& type, const std::string& json) {
  return arrow::json::ArrayFromJSONString(type, json).ValueOrDie();
}

}  // namespace penstock::arrow_files
