#include "penstock/run/text_table.h"

#include <charconv>
#include <utility>

namespace penstock {
namespace {

template <class Number>
void append_number(std::string& to, Number number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), number).ptr;
  to.append(text, end);
}

/// A value as it stands without quotation marks; of a NULL nothing.
void append_value(std::string& to, const Column& column, std::int64_t row) {
  if (!column.valid(row)) return;
  if (column.type == ColumnType::boolean)
    to += column.boolean(row) ? "true" : "false";
  else if (column.type == ColumnType::int64)
    append_number(to, column.int64(row));
  else if (column.type == ColumnType::float64)
    append_number(to, column.float64(row));
  else if (column.type == ColumnType::number(Dtype::float32))
    append_number(to, column.number<float>(row));
  else
    to += column.text(row);
}

char delimiter_of(TextFormat format) {
  return format == TextFormat::tsv ? '\t' : ',';
}

/// An empty text is told from a NULL by its quotation marks.
void append_cell(std::string& to, std::string_view text, char delimiter) {
  const bool plain = !text.empty() && text.front() != ' ' &&
                     text.back() != ' ' &&
                     text.find_first_of("\"\n\r") == text.npos &&
                     text.find(delimiter) == text.npos;
  if (plain) {
    to += text;
    return;
  }
  to += '"';
  for (char c : text) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

void append_csv(std::string& to, const Block& block, std::int64_t row,
                char delimiter) {
  for (std::size_t c = 0; c < block.columns.size(); ++c) {
    const Column& column = block.columns[c];
    if (c > 0) to += delimiter;
    if (column.type.is_text() && column.valid(row))
      append_cell(to, column.text(row), delimiter);
    else
      append_value(to, column, row);
  }
}

void append_json(std::string& to, const std::vector<std::string>& names,
                 const Block& block, std::int64_t row) {
  for (std::size_t c = 0; c < block.columns.size(); ++c) {
    const Column& column = block.columns[c];
    to += c == 0 ? "{" : ", ";
    to += names[c];
    if (!column.valid(row))
      to += "null";
    else if (column.type == ColumnType::text)
      to += Json(column.text(row)).dump();
    else  // a column of JSON stays JSON
      append_value(to, column, row);
  }
  to += '}';
}

class TextWriter final : public TableWriter {
 public:
  TextWriter(TextFormat format, std::vector<NewColumn> columns,
             std::function<void(const std::string&)> put,
             std::function<void()> finish)
      : format_(format),
        columns_(std::move(columns)),
        put_(std::move(put)),
        finish_(std::move(finish)) {
    put_(heading_text(format_, columns_));
  }
  void write(const Block& block) override {
    put_(rows_text(format_, columns_, block));
  }
  void finish() override { finish_(); }

 private:
  const TextFormat format_;
  const std::vector<NewColumn> columns_;
  const std::function<void(const std::string&)> put_;
  const std::function<void()> finish_;
};

}  // namespace

std::unique_ptr<TableWriter> text_writer(
    TextFormat format, std::vector<NewColumn> columns,
    std::function<void(const std::string& text)> put,
    std::function<void()> finish) {
  return std::make_unique<TextWriter>(format, std::move(columns),
                                      std::move(put), std::move(finish));
}

std::string heading_text(TextFormat format,
                         const std::vector<NewColumn>& columns) {
  std::string text;
  if (format == TextFormat::jsonl) return text;
  const char delimiter = delimiter_of(format);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) text += delimiter;
    append_cell(text, columns[c].name, delimiter);
  }
  return text + '\n';
}

std::string rows_text(TextFormat format, const std::vector<NewColumn>& columns,
                      const Block& block) {
  std::string text;
  std::vector<std::string> names;
  for (const NewColumn& column : columns)
    names.push_back(Json(column.name).dump() + ": ");
  for (std::int64_t row = 0; row < block.rows; ++row) {
    if (format == TextFormat::jsonl)
      append_json(text, names, block, row);
    else
      append_csv(text, block, row, delimiter_of(format));
    text += '\n';
  }
  return text;
}

std::string cell_text(const Column& column, std::int64_t row) {
  std::string text;
  append_value(text, column, row);
  return text;
}

}  // namespace penstock
