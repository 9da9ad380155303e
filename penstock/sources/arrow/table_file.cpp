#include "penstock/sources/arrow/table_file.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <parquet/arrow/writer.h>

#include <exception>
#include <filesystem>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/sources/files/file_source.h"

namespace penstock::arrow_files {
namespace {

constexpr std::int64_t kRows = 65536;  // of a row group, or record batch

[[noreturn]] void refuse_file(const SourceSpec& spec, const char* code,
                              std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = code,
                                   .what = "cannot write the file",
                                   .where = spec.path,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// Our files as Arrow writes to them: they are there, whole, once committed.
class Sink final : public arrow::io::OutputStream {
 public:
  explicit Sink(const std::string& path) : file_(real_files().create(path)) {}

  arrow::Status Write(const void* data, std::int64_t size) override {
    file_->append(
        {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
    at_ += size;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Tell() const override { return at_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  void commit() { file_->commit(Lasting::now); }
  /// Throws what writing has thrown.
  void check() const {
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  const std::unique_ptr<FileWriter> file_;
  std::int64_t at_ = 0;
  bool closed_ = false;
  std::exception_ptr failed_;
};

std::shared_ptr<arrow::DataType> type_of(ColumnType type) {
  if (type == ColumnType::boolean) return arrow::boolean();
  if (type == ColumnType::int64) return arrow::int64();
  if (type == ColumnType::number(Dtype::float32)) return arrow::float32();
  if (type == ColumnType::float64) return arrow::float64();
  return type.is_text() ? arrow::utf8() : nullptr;
}

template <class Builder, class ValueOf>
arrow::Status append(arrow::ArrayBuilder& to, const Column& column,
                     std::int64_t rows, ValueOf value_of) {
  auto& builder = static_cast<Builder&>(to);
  ARROW_RETURN_NOT_OK(builder.Reserve(rows));
  for (std::int64_t row = 0; row < rows; ++row)
    ARROW_RETURN_NOT_OK(column.valid(row) ? builder.Append(value_of(row))
                                          : builder.AppendNull());
  return arrow::Status::OK();
}

arrow::Status append_column(arrow::ArrayBuilder& to, const Column& column,
                            std::int64_t rows) {
  if (column.type == ColumnType::boolean)
    return append<arrow::BooleanBuilder>(
        to, column, rows,
        [&](std::int64_t row) { return column.boolean(row); });
  if (column.type == ColumnType::int64)
    return append<arrow::Int64Builder>(
        to, column, rows, [&](std::int64_t row) { return column.int64(row); });
  if (column.type == ColumnType::float64)
    return append<arrow::DoubleBuilder>(
        to, column, rows,
        [&](std::int64_t row) { return column.float64(row); });
  if (column.type.is_text())
    return append<arrow::StringBuilder>(
        to, column, rows, [&](std::int64_t row) { return column.text(row); });
  return append<arrow::FloatBuilder>(to, column, rows, [&](std::int64_t row) {
    return column.number<float>(row);
  });
}

class ArrowTableFile final : public TableWriter {
 public:
  ArrowTableFile(SourceSpec spec, const std::vector<NewColumn>& columns)
      : spec_(std::move(spec)), columns_(columns) {
    arrow::FieldVector fields;
    for (const NewColumn& column : columns_) {
      const std::shared_ptr<arrow::DataType> type = type_of(column.type);
      PENSTOCK_ASSERT(type != nullptr, "files hold numbers and texts");
      fields.push_back(arrow::field(column.name, type));
    }
    schema_ = arrow::schema(std::move(fields));
    rows_ = checked(arrow::RecordBatchBuilder::Make(
        schema_, arrow::default_memory_pool(), kRows));
    sink_ = std::make_shared<Sink>(spec_.path);
    if (spec_.kind == "parquet")
      open_parquet();
    else
      batches_ = checked(arrow::ipc::MakeFileWriter(sink_, schema_));
  }

  void write(const Block& block) override {
    check_block(block, columns_);
    for (std::size_t c = 0; c < columns_.size(); ++c)
      check(append_column(*rows_->GetField(static_cast<int>(c)),
                          block.columns[c], block.rows));
    held_ += block.rows;
    if (held_ >= kRows) flush();
  }
  void finish() override {
    flush();
    check(parquet_ != nullptr ? parquet_->Close() : batches_->Close());
    sink_->commit();
  }

 private:
  void open_parquet() {
    parquet::WriterProperties::Builder properties;
    properties.compression(parquet::Compression::SNAPPY);
    parquet_ = checked(parquet::arrow::FileWriter::Open(
        *schema_, arrow::default_memory_pool(), sink_, properties.build()));
  }
  void flush() {
    if (held_ == 0) return;
    held_ = 0;
    const std::shared_ptr<arrow::RecordBatch> batch = checked(rows_->Flush());
    if (parquet_ == nullptr) return check(batches_->WriteRecordBatch(*batch));
    const auto table = checked(arrow::Table::FromRecordBatches({batch}));
    check(parquet_->WriteTable(*table, kRows));
  }
  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    if (sink_ != nullptr) sink_->check();
    refuse_file(spec_, "source.write", status.message(),
                "write another format: name a file that ends with .csv");
  }
  template <class Value>
  Value checked(arrow::Result<Value> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }

  const SourceSpec spec_;
  const std::vector<NewColumn> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<arrow::RecordBatchBuilder> rows_;
  std::int64_t held_ = 0;  // in `rows_`
  std::shared_ptr<Sink> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> batches_;
};

}  // namespace

std::unique_ptr<TableWriter> make_table(const SourceSpec& spec,
                                        const std::vector<NewColumn>& columns,
                                        bool replace) {
  if (spec.kind == "hf") files::refuse_writing(spec, columns, replace);
  std::error_code none;
  if (!replace && std::filesystem::exists(spec.path, none))
    refuse_file(spec, "source.table_exists",
                "a file with this name already exists", "name another file");
  return std::make_unique<ArrowTableFile>(spec, columns);
}

}  // namespace penstock::arrow_files
