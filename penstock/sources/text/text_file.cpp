#include "penstock/sources/text/text_file.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/base/with_number.h"
#include "penstock/sources/timestamp.h"

namespace penstock::text {
namespace {

/// In megabytes, about: a tenth of a second of looking at cells.
constexpr std::size_t kMostChunks = 16;

}  // namespace

files::FileColumn column_that_looks(const std::string& name, Looks looks) {
  files::FileColumn column{.name = name};
  switch (looks) {
    case Looks::nothing:
      column.declared = "no value";
      column.type = ColumnType::null;
      break;
    case Looks::boolean:
      column.declared = "bool";
      column.type = ColumnType::boolean;
      break;
    case Looks::integer:
      column.declared = "int64";
      column.type = ColumnType::int64;
      break;
    case Looks::real:
      column.declared = "float64";
      column.type = ColumnType::float64;
      break;
    case Looks::time:
      column.declared = "timestamp";
      column.type = ColumnType::float64;
      column.timestamp = true;
      break;
    default:
      column.declared = "text";
      column.type = ColumnType::text;
      break;
  }
  return column;
}

files::FileColumn column_chosen(const std::string& name,
                                std::string_view type) {
  files::FileColumn column{.name = name, .declared = std::string(type)};
  Dtype dtype = Dtype::float64;
  if (type == "timestamp") {
    column.type = ColumnType::float64;
    column.timestamp = true;
  } else if (dtype_from(type, dtype)) {
    column.type = dtype == Dtype::boolean ? ColumnType::boolean
                                          : ColumnType::number(dtype);
  } else {
    column.type = type == "json" ? ColumnType::json : ColumnType::text;
  }
  return column;
}

std::vector<std::size_t> looked_at(std::size_t chunks, std::size_t files) {
  const std::size_t most =
      std::max<std::size_t>(1, kMostChunks / std::max<std::size_t>(1, files));
  std::vector<std::size_t> chosen;
  const std::size_t count = std::min(chunks, most);
  for (std::size_t at = 0; at < count; ++at)
    chosen.push_back(count == 1 ? 0 : at * (chunks - 1) / (count - 1));
  return chosen;
}

bool append_cell(const CellReader& reader, std::string_view text,
                 const files::FileColumn& as, Column& to) {
  if (to.type.kind == ColumnKind::boolean) {
    bool value = false;
    std::int64_t number = 2;
    if (!CellReader::boolean(text, value)) {
      if (!reader.number(text, number) || number < 0 || number > 1)
        return false;
      value = number == 1;
    }
    to.append_boolean(value);
    return true;
  }
  if (to.type.is_text()) {
    to.append_text(text);
    return true;
  }
  if (as.timestamp) {
    std::optional<double> time = timestamp_from(trimmed(text));
    if (time) to.append_float64(*time);
    return time.has_value();
  }
  return with_number(to.type.dtype, [&]<class Number>(Typed<Number>) {
    Number value{};
    if (!reader.number(text, value)) return false;
    to.append_number(value);
    return true;
  });
}

std::string expected_of(const files::FileColumn& column) {
  if (column.timestamp) return "an ISO-8601 time";
  if (column.type.kind == ColumnKind::boolean) return "true or false";
  return "a value that " + std::string(name_of(column.type)) + " can hold";
}

std::string_view ChunkBuffer::read(const PlainText& text,
                                   const TextChunk& chunk) {
  const auto size = static_cast<std::size_t>(chunk.bytes);
  if (bytes_.size() < size + 2 * kPadding) bytes_.resize(size + 2 * kPadding);
  char* begin = bytes_.data() + kPadding;
  text.read(chunk.offset, begin, size);
  std::fill_n(begin + size, kPadding, '\0');
  return {begin, size};
}

}  // namespace penstock::text
