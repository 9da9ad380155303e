#include "penstock/transforms/numbers/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/number_encoder.h"
#include "penstock/transforms/numbers/median.h"
#include "penstock/transforms/numbers/number_parser.h"
#include "penstock/transforms/numbers/number_row.h"

namespace penstock {
namespace {

using Missing = Numbers::Missing;

const std::pair<const char*, Missing> kMissing[] = {{"mean", Missing::mean},
                                                    {"median", Missing::median},
                                                    {"zero", Missing::zero},
                                                    {"nan", Missing::nan},
                                                    {"mask", Missing::mask}};

Json missing_rule() {
  Json names;
  names["enum"] = Json(Json::Array{});
  for (const auto& [name, missing] : kMissing) names["enum"].push_back(name);
  Json number;
  number["type"] = "number";
  Json rule;
  rule["anyOf"] = Json(Json::Array{names, number});
  rule["description"] =
      "what becomes of NULL and NaN; \"mask\": 0, and NAME_mask says so. Left "
      "out, such a row is bad.";
  return rule;
}

void read_missing(Spec& spec, const SettingSchema& setting, Numbers& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  if (found->is_number()) {
    to.missing = Missing::number;
    to.fill = found->number();
    return;
  }
  for (const auto& [name, missing] : kMissing)
    if (*found == Json(name)) {
      to.missing = missing;
      return;
    }
  spec.refuse(setting.key, "found " + found->dump(),
              "use \"mean\", \"median\", \"zero\", \"nan\", \"mask\" or a "
              "number");
}

Json show_missing(const Numbers& from) {
  if (from.missing == Missing::number) return Json(from.fill);
  for (const auto& [name, missing] : kMissing)
    if (missing == from.missing) return Json(name);
  return Json();
}

bool is_integer(Dtype dtype) {
  return dtype != Dtype::float32 && dtype != Dtype::float64;
}

void read_clip(Spec& spec, const SettingSchema& setting, Numbers& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  const bool two = found->is_array() && found->array().size() == 2 &&
                   std::ranges::all_of(found->array(), &Json::is_number);
  if (!two || found->array()[0].number() > found->array()[1].number())
    spec.refuse(setting.key, "found " + found->dump(),
                "write the least and the greatest number: [0, 100]");
  to.maths.least = found->array()[0].number();
  to.maths.most = found->array()[1].number();
}

Json show_clip(const Numbers& from) {
  if (!from.maths.clips()) return Json();
  return Json(Json::Array{from.maths.least, from.maths.most});
}

Json clip_rule() {
  Json rule = settings::rule_of(
      "array", "the least and the greatest number: others become these");
  rule["items"]["type"] = "number";
  rule["minItems"] = 2;
  rule["maxItems"] = 2;
  return rule;
}

void check_maths(Spec& section, const Numbers& numbers) {
  if (numbers.standardize && numbers.min_max)
    section.refuse("min_max", "found true, and standardize is true",
                   "choose one of them");
  if (numbers.missing == Missing::number && !numbers.maths.takes(numbers.fill))
    section.refuse(
        "missing",
        "found " + Json(numbers.fill).dump() + ", of which there is no log1p",
        "use a number above -1, or \"mean\"");
}

/// Integers hold neither NaN nor a mean.
void check_integers(Spec& section, const Numbers& numbers) {
  check_maths(section, numbers);
  if (!is_integer(numbers.dtype)) return;
  const std::string but =
      ", but dtype is \"" + std::string(name_of(numbers.dtype)) + "\"";
  for (auto [key, set] : {std::pair("standardize", numbers.standardize),
                          std::pair("min_max", numbers.min_max),
                          std::pair("log1p", numbers.maths.log1p),
                          std::pair("clip", numbers.maths.clips())})
    if (set)
      section.refuse(key, "found " + section.raw(key)->dump() + but,
                     "use float32 or float64, or leave it out");
  const bool whole = std::abs(numbers.fill) < 0x1p63 &&
                     numbers.fill == std::trunc(numbers.fill);
  if (numbers.missing == Missing::mean || numbers.missing == Missing::median ||
      numbers.missing == Missing::nan || !whole)
    section.refuse("missing", "found " + show_missing(numbers).dump() + but,
                   "use \"zero\", \"mask\" or an integer, or float32 or "
                   "float64");
}

SettingsTable<Numbers> with_rest(SettingsTable<Numbers> table) {
  return table
      .choice("dtype", &Numbers::dtype,
              {{"float32", Dtype::float32},
               {"float64", Dtype::float64},
               {"int64", Dtype::int64},
               {"int32", Dtype::int32},
               {"int16", Dtype::int16},
               {"int8", Dtype::int8},
               {"uint32", Dtype::uint32},
               {"uint16", Dtype::uint16},
               {"uint8", Dtype::uint8},
               {"bool", Dtype::boolean}},
              "")
      .setting("clip", clip_rule(), read_clip, show_clip)
      .setting(
          "log1p", settings::rule_of("boolean", "log(1 + value)"),
          [](Spec& spec, const SettingSchema& setting, Numbers& to) {
            to.maths.log1p = spec.boolean(setting.key, false);
          },
          [](const Numbers& from) {
            return from.maths.log1p ? Json(true) : Json();
          })
      .boolean("standardize", &Numbers::standardize, "")
      .setting(
          "min_max",
          settings::rule_of("boolean",
                            "from 0 to 1 over the rows of the train side"),
          [](Spec& spec, const SettingSchema& setting, Numbers& to) {
            to.min_max = spec.boolean(setting.key, false);
          },
          [](const Numbers& from) {
            return from.min_max ? Json(true) : Json();
          })
      .setting("missing", missing_rule(), read_missing, show_missing)
      .check(check_integers);
}

/// Of the kind `column`, where there is one, or `columns`.
const SettingsTable<Numbers>& numbers_settings(bool single) {
  static const SettingsTable<Numbers> many = with_rest(
      SettingsTable<Numbers>().names("columns", &Numbers::columns, ""));
  static const SettingsTable<Numbers> one = with_rest(
      SettingsTable<Numbers>()
          .setting(
              "column", settings::rule_of("string", ""),
              [](Spec& spec, const SettingSchema& setting, Numbers& to) {
                to.columns = {settings::read_text(spec, setting, "")};
                to.single = true;
              },
              [](const Numbers& from) {
                return from.columns.empty() ? Json() : Json(from.columns[0]);
              })
          .required()
          .not_empty());
  return single ? one : many;
}

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

 private:
  const NumberRow row_;
  std::vector<double> out_;
};

/// The tensor of the numbers, and their mask where there is one.
RowLayout layout_of(const std::string& name, const Numbers& numbers) {
  const Shape shape =
      numbers.single ? Shape{} : Shape{std::ssize(numbers.columns)};
  std::vector<TensorSpec> tensors = {
      {.name = name, .dtype = numbers.dtype, .row_shape = shape}};
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
          const std::vector<Standardization>& statistics)
      : numbers_(std::move(numbers)),
        row_(std::move(row)),
        settings_(settings),
        mask_at_(layout_of({}, settings).tensors.back().offset),
        raw_(row_.places.size()) {
    for (const Standardization& number : statistics)
      fills_.push_back(number.fill.value_or(row_.maths.of(settings.fill)));
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      row_.prepare(rows[i].data(), raw_.data());
      if (row_.masked) fill(rows[i].data());
      if (row_.exact)
        write_integers(to, static_cast<std::int64_t>(i), faults);
      else if (!numbers_.encode(raw_.data(), to)) [[unlikely]]
        faults.reject(numbers_.what_does_not_fit(raw_.data(),
                                                 static_cast<std::int64_t>(i)));
      if (row_.masked) mark(rows[i].data(), to);
    }
  }

 private:
  void write_integers(std::byte* to, std::int64_t row, Faults& faults) const {
    if (settings_.dtype == Dtype::int64) {
      std::memcpy(to, raw_.data(), raw_.size() * sizeof(double));
      return;
    }
    for (std::size_t c = 0; c < raw_.size(); ++c) {
      const auto number = std::bit_cast<std::int64_t>(raw_[c]);
      if (write_integer(settings_.dtype, number, to, c)) continue;
      faults.reject({.row = row,
                     .place = "column '" + settings_.columns[c] + "'",
                     .why = "found " + std::to_string(number),
                     .what = "cannot hold a value in " +
                             std::string(name_of(settings_.dtype)),
                     .next = "use \"dtype\": \"int64\", or check the data"});
      return;
    }
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
    if (settings_.dtype == Dtype::float64)
      std::memcpy(to + column * sizeof(kWide), &kWide, sizeof(kWide));
    else
      std::memcpy(to + column * sizeof(kNarrow), &kNarrow, sizeof(kNarrow));
  }

  const NumberEncoder numbers_;
  const NumberRow row_;
  const Numbers settings_;
  const std::size_t mask_at_;
  std::vector<double> fills_;  // by column
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
                          .setting = "fields." + name_ +
                                     (numbers_.single ? ".column" : ".columns"),
                          .rounded = rounded()});
    return requests;
  }
  StoredForm stored() const override {
    return {.tensors = layout_of(name_, numbers_).tensors};
  }
  Json recipe() const override {
    return numbers_settings(numbers_.single).shown(numbers_);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override;

  bool exact() const { return is_integer(numbers_.dtype); }
  /// Becomes float32 without standardising.
  bool rounded() const {
    return numbers_.dtype == Dtype::float32 && !numbers_.standardize &&
           !numbers_.min_max;
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
        place_{kind.name(), "column"} {}

  std::unique_ptr<FieldParser> parser() const override {
    return number_parser(kind_.numbers().columns, columns_, row_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes*) const override {
    auto rows = std::make_unique<RowNumbers>(row_);
    auto fit = fit_numbers(standardizations(), place_, rows->clone());
    if (kind_.numbers().missing != Missing::median) return fit;
    return with_medians(std::move(fit), kind_.numbers().columns,
                        std::move(rows));
  }
  std::optional<Json> unfitted() const override {
    if (kind_.numbers().missing == Missing::median) return std::nullopt;
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
           .fill_mean = settings.missing == Missing::mean});
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
  bool holds_times = numbers_.standardize || numbers_.min_max ||
                     numbers_.dtype == Dtype::float64;
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

namespace {

template <bool kSingle>
FieldDescriptor descriptor() {
  return {.key = kSingle ? "column" : "columns",
          .settings = numbers_settings(kSingle).schemas(),
          .make = [](const std::string& name, Spec& section) {
            Numbers numbers;
            numbers_settings(kSingle).read(section, numbers);
            return make_numbers(name, std::move(numbers));
          }};
}

}  // namespace

FieldDescriptor numbers_field() { return descriptor<false>(); }
FieldDescriptor number_field() { return descriptor<true>(); }

const Numbers* numbers_of(const Field& field) {
  auto* kind = dynamic_cast<const NumbersKind*>(field.kind.get());
  return kind == nullptr ? nullptr : &kind->numbers();
}

}  // namespace penstock
