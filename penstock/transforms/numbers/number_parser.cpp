#include "penstock/transforms/numbers/number_parser.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "penstock/base/json.h"
#include "penstock/base/with_number.h"

namespace penstock {
namespace {

class NumberParser final : public FieldParser {
 public:
  NumberParser(const std::vector<std::string>& names, FieldColumns columns,
               NumberRow format)
      : names_(names), columns_(std::move(columns)), row_(std::move(format)) {}

  // Column by column: the type is looked at once. Of several faults of a row
  // the first column's counts.
  void parse(const Block& block, Values& out, Faults& faults) override {
    auto rows = static_cast<std::size_t>(block.rows);
    out.width = row_.bytes;
    std::size_t first = out.bytes.size();
    out.bytes.resize(first + rows * row_.bytes);
    std::byte* to = out.bytes.mutable_data<std::byte>() + first;
    faulty_.assign(rows, false);
    std::size_t before = faults.rows.size();
    for (std::size_t c = 0; c < names_.size(); ++c) {
      const Column& column = block.columns[columns_.at[c]];
      PENSTOCK_ASSERT(column.type == columns_.types[c],
                      "a column has the type that was bound");
      if (row_.masked) mark(column, to + row_.bytes - names_.size() + c);
      parse_column(column, names_[c], to + row_.places[c].offset, faults);
    }
    std::ranges::sort(faults.rows.begin() + static_cast<std::ptrdiff_t>(before),
                      faults.rows.end(), {}, &RowFault::row);
  }

  const Values& canonical(const Values& values) override {
    if (row_.canonical()) return values;
    std::int64_t rows = values.rows();
    if (!row_.masked && !row_.exact) return widened(values);
    const bool marked = row_.masked && row_.exact;
    const std::size_t marks = marked ? names_.size() : 0;
    canonical_.width = names_.size() * sizeof(double) + marks;
    canonical_.bytes.resize(static_cast<std::size_t>(rows) * canonical_.width);
    auto* to = canonical_.bytes.mutable_data<std::byte>();
    decoded_.resize(names_.size());
    for (std::int64_t row = 0; row < rows; ++row, to += canonical_.width) {
      const ValueRow from = values.row(row);
      row_.decode(from.data(), decoded_.data());
      std::memcpy(to, decoded_.data(), canonical_.width - marks);
      std::memcpy(to + canonical_.width - marks,
                  from.data() + row_.bytes - marks, marks);
    }
    return canonical_;
  }

 private:
  /// As row_.decode() of each row, column by column.
  const Values& widened(const Values& values) {
    const std::size_t columns = row_.places.size();
    const auto rows = static_cast<std::size_t>(values.rows());
    canonical_.width = columns * sizeof(double);
    canonical_.bytes.resize(rows * canonical_.width);
    for (std::size_t c = 0; c < columns; ++c)
      with_number(row_.places[c].dtype, [&]<class Number>(Typed<Number>) {
        const std::byte* from = values.bytes.data() + row_.places[c].offset;
        auto* to = canonical_.bytes.mutable_data<double>() + c;
        for (std::size_t row = 0; row < rows; ++row) {
          Number number;
          std::memcpy(&number, from + row * row_.bytes, sizeof(number));
          to[row * columns] = static_cast<double>(number);
        }
      });
    return canonical_;
  }

  void reject(std::int64_t row, const std::string& column, std::string why,
              Faults& faults) {
    auto faulty = faulty_[static_cast<std::size_t>(row)];
    if (!faulty)
      faults.reject({.row = row, .place = column, .why = std::move(why)});
    faulty = true;
  }

  /// Where the numbers of a column are present. NaN is not.
  void mark(const Column& column, std::byte* to) {
    const bool real = column.type.kind == ColumnKind::number &&
                      (column.type.dtype == Dtype::float64 ||
                       column.type.dtype == Dtype::float32);
    for (std::int64_t row = 0; row < column.length; ++row, to += row_.bytes)
      *to = std::byte{column.valid(row) &&
                      !(real && std::isnan(column.as_float64(row)))};
  }

  /// False: a number is no finite one, and is to be looked at by itself.
  template <class Number>
  bool copy_finite(const Column& column, std::byte* to) const {
    bool finite = true;
    for (std::int64_t row = 0; row < column.length; ++row, to += row_.bytes) {
      auto number = column.number<Number>(row);
      if constexpr (std::is_floating_point_v<Number>) {
        finite &= std::abs(number) <= std::numeric_limits<Number>::max();
        number = number + Number{0};  // -0.0 becomes 0.0
      }
      std::memcpy(to, &number, sizeof(number));
    }
    return finite;
  }

  template <class Number>
  void copy(const Column& column, const std::string& name, std::byte* to,
            Faults& faults) {
    if (column.validity.size() == 0 && !row_.maths.log1p &&
        copy_finite<Number>(column, to))
      return;
    for (std::int64_t row = 0; row < column.length; ++row, to += row_.bytes) {
      auto number = column.number<Number>(row);
      if (!column.valid(row)) {
        missing(row, name, to, sizeof(number), faults);
        continue;
      }
      if constexpr (std::is_floating_point_v<Number>) {
        if (row_.masked && std::isnan(number)) {
          missing(row, name, to, sizeof(number), faults);
          continue;
        }
        if (!std::isfinite(number) &&
            !(row_.infinities && std::isinf(number))) {
          reject(row, name,
                 std::isnan(number)
                     ? "holds NaN, expected a finite number"
                     : "holds an infinity, expected a finite number",
                 faults);
          continue;
        }
        number = number + Number{0};
      }
      if (!row_.maths.takes(static_cast<double>(number))) {
        reject(row, name, "is -1 or less, expected a number above -1 for log1p",
               faults);
        continue;
      }
      std::memcpy(to, &number, sizeof(number));
    }
  }

  void missing(std::int64_t row, const std::string& name, std::byte* to,
               std::size_t bytes, Faults& faults) {
    if (row_.masked)
      std::memset(to, 0, bytes);
    else
      reject(row, name,
             "is NULL, expected a number; \"missing\" sets a replacement, as "
             "in {\"columns\": [" +
                 Json(name).dump() + (names_.size() > 1 ? ", ..." : "") +
                 "], \"missing\": \"mean\"}",
             faults);
  }

  void copy_bits(const Column& column, const std::string& name, std::byte* to,
                 Faults& faults) {
    for (std::int64_t row = 0; row < column.length; ++row, to += row_.bytes) {
      if (column.valid(row))
        *to = std::byte{column.boolean(row)};
      else
        missing(row, name, to, 1, faults);
    }
  }

  void parse_column(const Column& column, const std::string& name,
                    std::byte* to, Faults& faults) {
    if (column.type.kind == ColumnKind::boolean)
      return copy_bits(column, name, to, faults);
    switch (column.type.dtype) {
      case Dtype::float64:
        return copy<double>(column, name, to, faults);
      case Dtype::float32:
        return copy<float>(column, name, to, faults);
      case Dtype::int64:
        return copy<std::int64_t>(column, name, to, faults);
      case Dtype::uint64:
        return copy<std::uint64_t>(column, name, to, faults);
      case Dtype::int32:
        return copy<std::int32_t>(column, name, to, faults);
      case Dtype::uint32:
        return copy<std::uint32_t>(column, name, to, faults);
      case Dtype::int16:
        return copy<std::int16_t>(column, name, to, faults);
      case Dtype::uint16:
        return copy<std::uint16_t>(column, name, to, faults);
      case Dtype::int8:
        return copy<std::int8_t>(column, name, to, faults);
      case Dtype::boolean:
      case Dtype::uint8:
        return copy<std::uint8_t>(column, name, to, faults);
      default:
        break;
    }
    fail_assertion("dtype", "a number has a width that is read", __FILE__,
                   __LINE__);
  }

  const std::vector<std::string> names_;
  const FieldColumns columns_;
  const NumberRow row_;
  std::vector<bool> faulty_;  // of the block, by row
  Values canonical_;
  std::vector<double> decoded_;
};

}  // namespace

std::unique_ptr<FieldParser> number_parser(
    const std::vector<std::string>& names, FieldColumns columns,
    NumberRow row) {
  return std::make_unique<NumberParser>(names, std::move(columns),
                                        std::move(row));
}

}  // namespace penstock
