#include "penstock/transforms/category/parsed_values.h"

#include <cmath>
#include <cstring>
#include <utility>

// A parsed value is a byte that says whether there is one, and its bytes; or,
// with codes, 32 bits, of which hashes see the value in that first form.

namespace penstock {
namespace {

constexpr char kMissing = 0, kPresent = 1;

void append_value(Values& to, std::optional<std::string_view> value) {
  to.bytes.append_value(value ? kPresent : kMissing);
  if (value) to.bytes.append(value->data(), value->size());
  to.end_row();
}

RowFault missing_fault(const ParsedColumn& column, std::int64_t row) {
  return {.row = row,
          .place = column.name,
          .why =
              "is NULL, expected a class; \"unknown\": \"last\" gives such "
              "rows an additional class"};
}

/// Classes that are stored as numbers with a fraction, as pandas does where
/// some are missing: NaN is then missing.
bool is_real(ColumnType type) {
  return type.kind == ColumnKind::number &&
         (type.dtype == Dtype::float32 || type.dtype == Dtype::float64 ||
          type.dtype == Dtype::float16 || type.dtype == Dtype::bfloat16);
}

bool is_whole(double number) {
  return number >= -0x1p63 && number < 0x1p63 && number == std::trunc(number);
}

/// What is wrong with a number as a class; empty: nothing.
std::string no_class(const Column& column, std::int64_t row) {
  const double number = column.as_float64(row);
  if (!is_real(column.type) || is_whole(number)) return {};
  return "holds " + Json(number).dump() +
         ", expected a class: a 64-bit integer; use \"columns\" or \"column\" "
         "for other numbers";
}

/// As append_value() of each row.
void append_texts(const Column& column, std::int64_t rows, Values& to) {
  if (rows == 0) return;
  std::size_t end = to.bytes.size();
  to.bytes.resize(end + static_cast<std::size_t>(rows + column.offset(rows) -
                                                 column.offset(0)));
  char* bytes = to.bytes.mutable_data<char>();
  to.ends.reserve(to.ends.size() + static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool present = column.valid(row);
    bytes[end++] = present ? kPresent : kMissing;
    if (present) {
      const std::string_view text = column.text(row);
      if (!text.empty()) std::memcpy(bytes + end, text.data(), text.size());
      end += text.size();
    }
    to.ends.push_back(static_cast<std::uint32_t>(end));
  }
  to.bytes.resize(end);
}

/// Of a column of codes.
class CodeParser final : public FieldParser {
 public:
  explicit CodeParser(ParsedColumn column) : of_(std::move(column)) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[of_.at];
    const auto classes = std::ssize(*of_.codes);
    const std::size_t begin = out.bytes.size();
    out.width = sizeof(std::int32_t);
    out.bytes.resize(begin + static_cast<std::size_t>(block.rows) * out.width);
    auto* to = reinterpret_cast<std::int32_t*>(
        out.bytes.mutable_data<std::byte>() + begin);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      to[row] = kNoCode;
      // Some write -1 for a class that nobody knows.
      const std::int64_t code = column.valid(row) ? column.as_int64(row) : -1;
      if (code < -1 || code >= classes)
        faults.reject({.row = row,
                       .place = of_.name,
                       .why = "found class " + std::to_string(code) +
                              ", expected 0 to " +
                              std::to_string(classes - 1)});
      else if (code < 0 && !of_.takes_missing)
        faults.reject(missing_fault(of_, row));
      else
        to[row] = static_cast<std::int32_t>(code);
    }
  }
  const Values& canonical(const Values& values) override {
    texts_.clear();
    for (std::int64_t row = 0; row < values.rows(); ++row)
      append_value(texts_, value_of(values.row(row), of_.codes));
    return texts_;
  }

 private:
  const ParsedColumn of_;
  Values texts_;
};

class Parser final : public FieldParser {
 public:
  explicit Parser(ParsedColumn column) : of_(std::move(column)) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[of_.at];
    if (column.type.is_text() && of_.type == ClassType::text &&
        (of_.takes_missing || column.validity.size() == 0))
      return append_texts(column, block.rows, out);
    const bool real = is_real(column.type);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      bool present =
          column.valid(row) && !(real && std::isnan(column.as_float64(row)));
      if (std::string why;
          real && present && !(why = no_class(column, row)).empty()) {
        faults.reject({.row = row, .place = of_.name, .why = std::move(why)});
        out.bytes.append_value(kMissing);
        out.end_row();
        continue;
      }
      if (!present && !of_.takes_missing)
        faults.reject(missing_fault(of_, row));
      out.bytes.append_value(present ? kPresent : kMissing);
      if (present) append(column, row, out.bytes);
      out.end_row();
    }
  }

 private:
  void append(const Column& column, std::int64_t row, Bytes& to) const {
    if (column.type.kind == ColumnKind::dictionary)
      return append(column.children[0], column.as_int64(row), to);
    if (of_.type == ClassType::text) {
      const std::string_view text = column.text(row);
      to.append(text.data(), text.size());
    } else if (of_.type == ClassType::boolean) {
      to.append_value(static_cast<char>(column.boolean(row)));
    } else if (is_real(column.type)) {
      to.append_value(static_cast<std::int64_t>(column.as_float64(row)));
    } else {
      to.append_value(column.as_int64(row));
    }
  }

  const ParsedColumn of_;
};

}  // namespace

std::int32_t code_in(ValueRow row) {
  std::int32_t code = kNoCode;
  std::memcpy(&code, row.data(), sizeof(code));
  return code;
}

std::optional<std::string_view> value_of(ValueRow row, const Codes& codes) {
  if (codes != nullptr) {
    const std::int32_t code = code_in(row);
    if (code == kNoCode) return std::nullopt;
    return (*codes)[static_cast<std::size_t>(code)];
  }
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()),
                               row.size());
  if (bytes[0] == kMissing) return std::nullopt;
  return bytes.substr(1);
}

std::unique_ptr<FieldParser> category_parser(ParsedColumn column) {
  if (column.codes != nullptr)
    return std::make_unique<CodeParser>(std::move(column));
  return std::make_unique<Parser>(std::move(column));
}

}  // namespace penstock
