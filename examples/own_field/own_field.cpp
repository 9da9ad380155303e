// Your own kind of field, whose samples differ in length: the bytes of a
// text column as tokens, and 256 behind the last one.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "penstock/loader/loader.h"

namespace {

using namespace penstock;

/// The first step, once per row: what is read becomes values.
class TextParser : public FieldParser {
 public:
  TextParser(std::string column, std::size_t at)
      : column_(std::move(column)), at_(at) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& texts = block.columns[at_];
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::string_view text = texts.valid(row) ? texts.text(row) : "";
      if (text.empty())
        faults.reject({.row = row, .place = column_, .why = "is empty"});
      out.bytes.append(text.data(), text.size());
      out.ends.push_back(static_cast<std::uint32_t>(out.bytes.size()));
    }
  }

 private:
  const std::string column_;
  const std::size_t at_;
};

/// The second step, once per row: values become what is kept.
class TokenEncoder : public FieldEncoder {
 public:
  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults&) override {
    for (ValueRow row : rows) {
      for (std::byte byte : row)
        out.runs->bytes.append_value(static_cast<std::int32_t>(byte));
      out.runs->bytes.append_value(std::int32_t{256});
      out.runs->ends.push_back(
          static_cast<std::uint32_t>(out.runs->bytes.size()));
    }
  }
};

/// The field over the columns of one source. It has no statistics to fit.
class BoundTokens : public BoundField {
 public:
  explicit BoundTokens(FieldColumns columns) : columns_(std::move(columns)) {}

  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<TextParser>(columns_.info[0].name, columns_.at[0]);
  }
  std::unique_ptr<FieldEncoder> encoder(const Json&,
                                        const std::string&) const override {
    return std::make_unique<TokenEncoder>();
  }

 private:
  const FieldColumns columns_;
};

/// The kind itself: which columns it reads, what it keeps, what it gives.
class ByteTokens : public FieldKind {
 public:
  ByteTokens(const std::string& name, const std::string& column)
      : FieldKind({.columns = {{.column = column,
                                .as = ReadAs::value,
                                .setting = name}},
                   .stored = {.element_bytes = 4},
                   .outputs = {{.name = name,
                                .dtype = Dtype::int32,
                                .lengths = Lengths::padded}},
                   .recipe = Json(Json::Object{{"byte_tokens", column}})}) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    return std::make_shared<BoundTokens>(std::move(columns));
  }
};

/// A table of three texts.
void write_texts(const SourceSpec& to) {
  Block block;
  block.columns.resize(2);
  block.columns[0].type = ColumnType::int64;
  block.columns[1].type = ColumnType::text;
  for (const char* text : {"a", "bcd", "ef"}) {
    block.columns[0].append_int64(++block.rows);
    block.columns[1].append_text(text);
  }
  auto table = create_table(
      to,
      {{.name = "id", .type = ColumnType::int64, .primary_key = true},
       {.name = "text", .type = ColumnType::text}},
      true);
  table->write(block);
  table->finish();
}

}  // namespace

int main(int argc, char** argv) try {
  TableDatasetOptions options;
  options.source = {.kind = "sqlite",
                    .path = argc > 1 ? argv[1] : "texts.sqlite",
                    .table = "texts"};
  write_texts(options.source);
  options.fields = {{"tokens", std::make_shared<ByteTokens>("tokens", "text")}};
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  std::shared_ptr<const TableDataset> rows =
      TableDataset::prepare(options, *device);
  Loader loader(rows, {.shuffle = false, .batch_size = 3, .batches = 1},
                *device);
  std::unique_ptr<Stream> stream = device->make_stream();
  while (std::optional<Batch> batch = loader.next(*stream)) {
    const TensorView& tokens = batch->tensors()[0].view;
    auto* token = reinterpret_cast<const std::int32_t*>(tokens.data);
    for (std::int64_t row = 0; row < tokens.shape[0]; ++row) {
      for (std::int64_t i = 0; i < tokens.shape[1]; ++i)
        std::printf("%d ", *token++);
      std::printf("\n");
    }
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
