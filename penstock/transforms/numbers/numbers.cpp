#include "penstock/transforms/numbers/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "penstock/base/half.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/number_encoder.h"
#include "penstock/transforms/numbers/number_columns.h"
#include "penstock/transforms/numbers/number_map.h"
#include "penstock/transforms/numbers/number_parser.h"
#include "penstock/transforms/numbers/number_row.h"
#include "penstock/transforms/numbers/numbers_settings.h"
#include "penstock/transforms/numbers/quantiles.h"

namespace penstock {
namespace {

using Missing = Numbers::Missing;
using Quantile = Numbers::Quantile;

/// A row is one element; what keeps its 64 bits is counted, never summed.
class RowNumbers final : public NumberRows {
 public:
  explicit RowNumbers(NumberRow row)
      : row_(std::move(row)), out_(row_.places.size()) {}

  std::span<const double> numbers(ValueRow row) override {
    if (!row_.exact)
      row_.prepare(row.data(), out_.data());
    else
      for (std::size_t i = 0; i < out_.size(); ++i)
        out_[i] = row_.present(row.data(), i)
                      ? 0.0
                      : std::numeric_limits<double>::quiet_NaN();
    return out_;
  }
  std::unique_ptr<NumberRows> clone() const override {
    return std::make_unique<RowNumbers>(row_);
  }
  bool whole() const override { return !row_.masked; }

 private:
  const NumberRow row_;
  std::vector<double> out_;
};

/// Something else than the numbers comes into a batch.
bool maps(const Numbers& numbers) {
  return numbers.bucketized() || numbers.quantile != Quantile::none;
}

/// The tensor of the numbers, and their mask where there is one.
RowLayout layout_of(const std::string& name, const Numbers& numbers) {
  const Shape shape =
      numbers.single ? Shape{} : Shape{std::ssize(numbers.columns)};
  std::vector<TensorSpec> tensors = {
      {.name = name, .dtype = numbers.made(), .row_shape = shape}};
  if (numbers.missing == Missing::mask)
    tensors.push_back({.name = name + "_mask", .row_shape = shape});
  RowLayout layout;
  layout.append(std::move(tensors));
  return layout;
}

template <class Number>
bool write_as(std::int64_t number, std::byte* to, std::size_t at) {
  const auto narrow = static_cast<Number>(number);
  std::memcpy(to + at * sizeof(narrow), &narrow, sizeof(narrow));
  return std::in_range<Number>(number);
}

/// False where the number does not fit.
bool write_integer(Dtype dtype, std::int64_t number, std::byte* to,
                   std::size_t at) {
  switch (dtype) {
    case Dtype::int32:
      return write_as<std::int32_t>(number, to, at);
    case Dtype::int16:
      return write_as<std::int16_t>(number, to, at);
    case Dtype::int8:
      return write_as<std::int8_t>(number, to, at);
    case Dtype::uint32:
      return write_as<std::uint32_t>(number, to, at);
    case Dtype::uint16:
      return write_as<std::uint16_t>(number, to, at);
    case Dtype::boolean:
      return write_as<std::uint8_t>(number, to, at) && number <= 1;
    default:
      return write_as<std::uint8_t>(number, to, at);
  }
}

class Encoder final : public FieldEncoder {
 public:
  Encoder(NumberEncoder numbers, NumberRow row, const Numbers& settings,
          std::vector<Standardization> statistics)
      : numbers_(std::move(numbers)),
        row_(std::move(row)),
        settings_(settings),
        statistics_(std::move(statistics)),
        maps_(maps(settings)),
        mask_at_(layout_of({}, settings).tensors.back().offset),
        raw_(row_.places.size()) {
    for (const Standardization& number : statistics_)
      fills_.push_back(number.fill.value_or(row_.maths.of(settings.fill)));
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    const bool half = settings_.dtype == Dtype::float16;
    if (!row_.masked && !row_.exact && !maps_ && !half && !row_.maths.any() &&
        encode_columns(rows, row_, statistics_, settings_.dtype, out))
      return;
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      row_.prepare(rows[i].data(), raw_.data());
      if (row_.masked) fill(rows[i].data());
      if (maps_) map();
      if (settings_.bucketized())
        write_buckets(to);
      else if (row_.exact)
        write_integers(to, static_cast<std::int64_t>(i), faults);
      else if (!(half ? write_halves(to) : numbers_.encode(raw_.data(), to)))
          [[unlikely]]
        faults.reject(numbers_.what_does_not_fit(raw_.data(),
                                                 static_cast<std::int64_t>(i)));
      if (row_.masked) mark(rows[i].data(), to);
    }
  }

 private:
  void map() {
    for (std::size_t c = 0; c < raw_.size(); ++c)
      raw_[c] = mapped(statistics_[c], raw_[c]);
  }
  /// A number that is missing is in bucket 0.
  void write_buckets(std::byte* to) const {
    for (std::size_t c = 0; c < raw_.size(); ++c) {
      const auto bucket =
          static_cast<std::int64_t>(std::isnan(raw_[c]) ? 0.0 : raw_[c]);
      std::memcpy(to + c * sizeof(bucket), &bucket, sizeof(bucket));
    }
  }
  void write_integers(std::byte* to, std::int64_t row, Faults& faults) const {
    if (settings_.dtype == Dtype::int64) {
      std::memcpy(to, raw_.data(), raw_.size() * sizeof(double));
      return;
    }
    const bool wide = settings_.dtype == Dtype::uint64;
    for (std::size_t c = 0; c < raw_.size(); ++c) {
      const auto number = std::bit_cast<std::int64_t>(raw_[c]);
      if (wide) std::memcpy(to + c * sizeof(number), &number, sizeof(number));
      if (wide ? number >= 0 || row_.places[c].dtype == Dtype::uint64
               : write_integer(settings_.dtype, number, to, c))
        continue;
      faults.reject({.row = row,
                     .place = "column '" + settings_.columns[c] + "'",
                     .why = "found " + std::to_string(number),
                     .what = "cannot hold a value in " +
                             std::string(name_of(settings_.dtype)),
                     .next = "use \"dtype\": \"int64\", or check the data"});
      return;
    }
  }
  /// False where one does not fit.
  bool write_halves(std::byte* to) {
    singles_.resize(raw_.size());
    bool fits = numbers_.encode(raw_.data(),
                                reinterpret_cast<std::byte*>(singles_.data()));
    for (std::size_t c = 0; c < singles_.size(); ++c) {
      const std::uint16_t half = to_float16(singles_[c]);
      fits &= std::isfinite(from_float16(half)) || std::isinf(singles_[c]);
      std::memcpy(to + c * sizeof(half), &half, sizeof(half));
    }
    return fits;
  }
  /// What is still NaN then is 0 after standardising.
  void fill(const std::byte* row) {
    if (settings_.missing == Missing::mask || settings_.missing == Missing::nan)
      return;
    for (std::size_t c = 0; c < raw_.size(); ++c) {
      if (row_.present(row, c)) continue;
      raw_[c] =
          row_.exact
              ? std::bit_cast<double>(static_cast<std::int64_t>(fills_[c]))
              : fills_[c];
    }
  }
  void mark(const std::byte* row, std::byte* to) const {
    for (std::size_t c = 0; c < raw_.size(); ++c) {
      const bool present = row_.present(row, c);
      const float mask = present ? 1 : 0;
      if (settings_.missing == Missing::mask)
        std::memcpy(to + mask_at_ + c * sizeof(mask), &mask, sizeof(mask));
      else if (settings_.missing == Missing::nan && !present)
        write_nan(to, c);
    }
  }
  void write_nan(std::byte* to, std::size_t column) const {
    constexpr auto kWide = std::numeric_limits<double>::quiet_NaN();
    constexpr auto kNarrow = std::numeric_limits<float>::quiet_NaN();
    const std::uint16_t half = to_float16(kNarrow);
    if (settings_.dtype == Dtype::float64)
      std::memcpy(to + column * sizeof(kWide), &kWide, sizeof(kWide));
    else if (settings_.dtype == Dtype::float16)
      std::memcpy(to + column * sizeof(half), &half, sizeof(half));
    else
      std::memcpy(to + column * sizeof(kNarrow), &kNarrow, sizeof(kNarrow));
  }

  const NumberEncoder numbers_;
  const NumberRow row_;
  const Numbers settings_;
  const std::vector<Standardization> statistics_;  // by column
  const bool maps_;
  const std::size_t mask_at_;
  std::vector<double> fills_;  // by column
  std::vector<double> raw_;
  std::vector<float> singles_;  // of a row that becomes float16
};

/// Steps between the least and the greatest value, of a quantile transform.
constexpr std::int64_t kQuantiles = 1000;

/// Integers are read as int64, which is too narrow for these.
bool wide(const Numbers& numbers) { return numbers.dtype == Dtype::uint64; }

/// Not put into another scale.
bool plain(const Numbers& numbers) {
  return !numbers.standardize && !numbers.min_max && !maps(numbers);
}

FieldFacts facts_of(const std::string& name, const Numbers& numbers) {
  FieldFacts facts{
      .stored = {.tensors = layout_of(name, numbers).tensors},
      .recipe = numbers_settings(numbers.single).shown(numbers),
      .built_in = true,
      .numbers = NumberFacts{.columns = numbers.columns,
                             .dtype = numbers.dtype,
                             .missing = numbers.missing,
                             .bucketized = numbers.bucketized(),
                             .quantiles = numbers.quantile != Quantile::none}};
  for (const std::string& column : numbers.columns)
    facts.columns.push_back(
        {.column = column,
         .as = wide(numbers)               ? ReadAs::value
               : is_integer(numbers.dtype) ? ReadAs::integer
                                           : ReadAs::number,
         .setting =
             "fields." + name + (numbers.single ? ".column" : ".columns"),
         .rounded = numbers.dtype == Dtype::float32 && plain(numbers)});
  return facts;
}

class NumbersKind final : public FieldKind {
 public:
  NumbersKind(std::string name, Numbers numbers)
      : FieldKind(facts_of(name, numbers)),
        name_(std::move(name)),
        numbers_(std::move(numbers)) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override;

  bool exact() const { return is_integer(numbers_.dtype); }
  /// Where NaN stays, so do they, unless something is computed of the values.
  bool keeps_infinities() const {
    return numbers_.missing == Missing::nan && plain(numbers_) &&
           !numbers_.maths.any();
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
        row_(columns_.types, kind.exact(),
             kind.numbers().missing != Missing::bad, kind.numbers().maths),
        place_{kind.name(), "column"} {
    row_.infinities = kind.keeps_infinities();
  }

  std::unique_ptr<FieldParser> parser() const override {
    return number_parser(kind_.numbers().columns, columns_, row_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes*) const override {
    const Numbers& settings = kind_.numbers();
    const RowNumbers rows(row_);
    auto fit = fit_numbers(standardizations(), place_, rows.clone());
    auto add = [&](QuantilePlaces places, const char* key) {
      fit = with_quantiles(std::move(fit), settings.columns, place_,
                           rows.clone(), places, key);
    };
    if (settings.missing == Missing::median)
      add({.first = 1, .last = 1, .of = 2}, "fill");
    if (settings.buckets > 0)
      add({.first = 1, .last = settings.buckets - 1, .of = settings.buckets},
          "edges");
    if (settings.quantile != Quantile::none)
      add({.first = 0, .last = kQuantiles, .of = kQuantiles}, "quantiles");
    return fit;
  }
  std::optional<Json> unfitted() const override {
    const Numbers& settings = kind_.numbers();
    if (settings.missing == Missing::median || settings.buckets > 0 ||
        settings.quantile != Quantile::none)
      return std::nullopt;
    return unfitted_numbers(standardizations());
  }
  std::vector<Standardization> standardizations() const {
    const Numbers& settings = kind_.numbers();
    std::vector<Standardization> numbers;
    for (std::size_t i = 0; i < settings.columns.size(); ++i) {
      bool boolean = columns_.info[i].boolean;
      numbers.push_back(
          {.name = settings.columns[i],
           .boolean = boolean,
           .standardize =
               (settings.standardize || settings.min_max) && !boolean,
           .min_max = settings.min_max && !boolean,
           .log1p = settings.maths.log1p,
           .fill_mean = settings.missing == Missing::mean,
           .edges = settings.edges,
           .normal = settings.quantile == Quantile::normal});
    }
    return numbers;
  }
  std::unique_ptr<FieldEncoder> encoder(
      const Json& statistics, const std::string& path) const override {
    const Numbers& settings = kind_.numbers();
    std::vector<Standardization> numbers =
        standardizations_from(statistics, settings.columns, path);
    return std::make_unique<Encoder>(
        NumberEncoder(numbers, place_, settings.dtype), row_, settings,
        numbers);
  }

 private:
  const NumbersKind kind_;
  const FieldColumns columns_;
  NumberRow row_;
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
  bool holds_times = !plain(numbers_) || numbers_.dtype == Dtype::float64;
  for (const ColumnInfo& column : columns.info) {
    std::string shown =
        "column '" + column.name + "' (" + column.declared + ")";
    if (holds_times) continue;
    if (column.text)
      refuse("fields.text", shown + " is text, not numbers",
             "for classes write {\"category\": {\"column\": " +
                 Json(column.name).dump() +
                 "}}; if the text is an ISO-8601 time, add \"dtype\": "
                 "\"float64\" or \"standardize\": true to read it as seconds "
                 "since 1970");
    if (column.timestamp)
      refuse("fields.timestamp",
             shown + " holds timestamps, whose seconds since 1970 do not fit " +
                 std::string(name_of(numbers_.dtype)),
             "add \"dtype\": \"float64\" or \"standardize\": true");
  }
  for (std::size_t c = 0; wide(numbers_) && c < columns.types.size(); ++c) {
    const ColumnType type = columns.types[c];
    const bool whole =
        type.kind == ColumnKind::boolean ||
        (type.kind == ColumnKind::number && is_integer(type.dtype));
    if (!whole)
      throw column_error("fields.dtype", "fields." + name_ + ".dtype",
                         columns.info[c], type, "expected integers for uint64",
                         "use \"int64\", or for a file set the column's type "
                         "in source.columns");
  }
  return std::make_shared<BoundNumbers>(*this, std::move(columns));
}

}  // namespace

std::shared_ptr<const FieldKind> make_numbers(std::string name,
                                              Numbers numbers) {
  return std::make_shared<NumbersKind>(std::move(name), std::move(numbers));
}

namespace {

template <bool kSingle>
FieldDescriptor descriptor() {
  return {.key = kSingle ? "column" : "columns",
          .settings = [] { return numbers_settings(kSingle).schemas(); },
          .make =
              [](const std::string& name, Spec& section) {
                Numbers numbers;
                numbers_settings(kSingle).read(section, numbers);
                return make_numbers(name, std::move(numbers));
              }};
}

}  // namespace

FieldDescriptor numbers_field() { return descriptor<false>(); }
FieldDescriptor number_field() { return descriptor<true>(); }

}  // namespace penstock
