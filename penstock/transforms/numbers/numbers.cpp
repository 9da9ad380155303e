#include "penstock/transforms/numbers/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/number_encoder.h"
#include "penstock/transforms/numbers/number_row.h"

namespace penstock {
namespace {

const SettingsTable<Numbers>& numbers_settings() {
  static const SettingsTable<Numbers> table =
      SettingsTable<Numbers>()
          .names("columns", &Numbers::columns, "")
          .choice("dtype", &Numbers::dtype,
                  {{"float32", Dtype::float32},
                   {"float64", Dtype::float64},
                   {"int64", Dtype::int64}},
                  "")
          .boolean("standardize", &Numbers::standardize, "")
          .check([](Spec& section, Numbers& numbers) {
            if (numbers.dtype == Dtype::int64 && numbers.standardize)
              section.refuse("standardize",
                             "found true, but dtype is \"int64\"",
                             "use float32 or float64, or do not standardise");
          });
  return table;
}

class Parser final : public FieldParser {
 public:
  Parser(const std::vector<std::string>& names, FieldColumns columns,
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
      parse_column(column, names_[c], to + row_.places[c].offset, faults);
    }
    std::ranges::sort(faults.rows.begin() + static_cast<std::ptrdiff_t>(before),
                      faults.rows.end(), {}, &RowFault::row);
  }

  const Values& canonical(const Values& values) override {
    if (row_.canonical()) return values;
    std::int64_t rows = values.rows();
    canonical_.width = names_.size() * sizeof(double);
    canonical_.bytes.resize(static_cast<std::size_t>(rows) * canonical_.width);
    auto* to = canonical_.bytes.mutable_data<double>();
    for (std::int64_t row = 0; row < rows; ++row, to += names_.size())
      row_.decode(values.row(row).data(), to);
    return canonical_;
  }

 private:
  void reject(std::int64_t row, const std::string& column, const char* why,
              Faults& faults) {
    auto faulty = faulty_[static_cast<std::size_t>(row)];
    if (!faulty) faults.reject({.row = row, .place = column, .why = why});
    faulty = true;
  }

  template <class Number>
  void copy(const Column& column, const std::string& name, std::byte* to,
            Faults& faults) {
    for (std::int64_t row = 0; row < column.length; ++row, to += row_.bytes) {
      auto number = column.number<Number>(row);
      if (!column.valid(row)) {
        reject(row, name, "is NULL, expected a number", faults);
        continue;
      }
      if constexpr (std::is_floating_point_v<Number>) {
        if (!std::isfinite(number)) {
          reject(row, name,
                 std::isnan(number)
                     ? "holds NaN, expected a finite number"
                     : "holds an infinity, expected a finite number",
                 faults);
          continue;
        }
        number = number + Number{0};  // -0.0 becomes 0.0
      }
      std::memcpy(to, &number, sizeof(number));
    }
  }

  void copy_bits(const Column& column, const std::string& name, std::byte* to,
                 Faults& faults) {
    for (std::int64_t row = 0; row < column.length; ++row, to += row_.bytes) {
      if (column.valid(row))
        *to = std::byte{column.boolean(row)};
      else
        reject(row, name, "is NULL, expected a number", faults);
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
};

/// A row is one element; what keeps its 64 bits is counted, never summed.
class RowNumbers final : public NumberRows {
 public:
  explicit RowNumbers(NumberRow row)
      : row_(std::move(row)), out_(row_.places.size()) {}

  std::span<const double> numbers(ValueRow row) override {
    if (!row_.exact) row_.decode(row.data(), out_.data());
    return out_;
  }
  std::unique_ptr<NumberRows> clone() const override {
    return std::make_unique<RowNumbers>(row_);
  }

 private:
  const NumberRow row_;
  std::vector<double> out_;
};

class Encoder final : public FieldEncoder {
 public:
  Encoder(NumberEncoder numbers, NumberRow row)
      : numbers_(std::move(numbers)),
        row_(std::move(row)),
        raw_(row_.places.size()) {}

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      row_.decode(rows[i].data(), raw_.data());
      if (row_.exact)
        std::memcpy(to, raw_.data(), raw_.size() * sizeof(double));
      else if (!numbers_.encode(raw_.data(), to)) [[unlikely]]
        faults.reject(numbers_.what_does_not_fit(raw_.data(),
                                                 static_cast<std::int64_t>(i)));
    }
  }

 private:
  const NumberEncoder numbers_;
  const NumberRow row_;
  std::vector<double> raw_;
};

class NumbersKind final : public FieldKind {
 public:
  NumbersKind(std::string name, Numbers numbers)
      : name_(std::move(name)), numbers_(std::move(numbers)) {}

  std::vector<ColumnRequest> columns() const override {
    std::vector<ColumnRequest> requests;
    for (const std::string& column : numbers_.columns)
      requests.push_back({.column = column,
                          .as = exact() ? ReadAs::integer : ReadAs::number,
                          .setting = "fields." + name_ + ".columns",
                          .rounded = rounded()});
    return requests;
  }
  StoredForm stored() const override {
    RowLayout layout;
    layout.append({{.name = name_,
                    .dtype = numbers_.dtype,
                    .row_shape = {std::ssize(numbers_.columns)}}});
    return {.tensors = std::move(layout.tensors)};
  }
  Json recipe() const override { return numbers_settings().shown(numbers_); }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override;

  bool exact() const { return numbers_.dtype == Dtype::int64; }
  /// Becomes float32 without standardising.
  bool rounded() const {
    return numbers_.dtype == Dtype::float32 && !numbers_.standardize;
  }
  const std::string& name() const { return name_; }
  const Numbers& numbers() const { return numbers_; }

 private:
  const std::string name_;
  const Numbers numbers_;
};

class BoundNumbers final : public BoundField {
 public:
  BoundNumbers(const NumbersKind& kind, FieldColumns columns)
      : kind_(kind),
        columns_(std::move(columns)),
        row_(columns_.types, kind.exact()),
        place_{kind.name(), "column"} {}

  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(kind_.numbers().columns, columns_, row_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes*) const override {
    return fit_numbers(standardizations(), place_,
                       std::make_unique<RowNumbers>(row_));
  }
  std::optional<Json> unfitted() const override {
    return unfitted_numbers(standardizations());
  }
  std::vector<Standardization> standardizations() const {
    const Numbers& settings = kind_.numbers();
    std::vector<Standardization> numbers;
    for (std::size_t i = 0; i < settings.columns.size(); ++i) {
      bool boolean = columns_.info[i].boolean;
      numbers.push_back({.name = settings.columns[i],
                         .boolean = boolean,
                         .standardize = settings.standardize && !boolean});
    }
    return numbers;
  }
  std::unique_ptr<FieldEncoder> encoder(
      const Json& statistics, const std::string& path) const override {
    const Numbers& settings = kind_.numbers();
    return std::make_unique<Encoder>(
        NumberEncoder(standardizations_from(statistics, settings.columns, path),
                      place_, settings.dtype),
        row_);
  }

 private:
  const NumbersKind kind_;
  const FieldColumns columns_;
  const NumberRow row_;
  const NumberPlace place_;
};

// Seconds since 1970 need more than float32's 24 bits, and fractions of them
// more than an integer. A text that holds a time would be rounded as any other
// time is; most texts hold none.
std::shared_ptr<const BoundField> NumbersKind::bind(
    FieldColumns columns) const {
  auto refuse = [&](const char* code, std::string why, std::string next) {
    throw Error(ErrorKind::request, {.code = code,
                                     .what = "cannot use the settings",
                                     .where = "fields." + name_,
                                     .why = std::move(why),
                                     .next = std::move(next)});
  };
  bool holds_times = numbers_.standardize || numbers_.dtype == Dtype::float64;
  for (const ColumnInfo& column : columns.info) {
    std::string shown =
        "column '" + column.name + "' (" + column.declared + ")";
    if (holds_times) continue;
    if (column.text)
      refuse("fields.text", shown + " is text, not numbers",
             "name a column of numbers; if the text is an ISO-8601 time, add "
             "\"dtype\": \"float64\" or \"standardize\": true to read it "
             "as seconds since 1970");
    if (column.timestamp)
      refuse("fields.timestamp",
             shown + " holds timestamps, whose seconds since 1970 do not fit " +
                 std::string(name_of(numbers_.dtype)),
             "add \"dtype\": \"float64\" or \"standardize\": true");
  }
  return std::make_shared<BoundNumbers>(*this, std::move(columns));
}

}  // namespace

std::shared_ptr<const FieldKind> make_numbers(std::string name,
                                              Numbers numbers) {
  return std::make_shared<NumbersKind>(std::move(name), std::move(numbers));
}

FieldDescriptor numbers_field() {
  return {.key = "columns",
          .settings = numbers_settings().schemas(),
          .make = [](const std::string& name, Spec& section) {
            Numbers numbers;
            numbers_settings().read(section, numbers);
            return make_numbers(name, std::move(numbers));
          }};
}

const Numbers* numbers_of(const Field& field) {
  auto* kind = dynamic_cast<const NumbersKind*>(field.kind.get());
  return kind == nullptr ? nullptr : &kind->numbers();
}

}  // namespace penstock
