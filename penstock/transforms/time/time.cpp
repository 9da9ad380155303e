#include "penstock/transforms/time/time.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/kinds.h"

namespace penstock {
namespace {

using By = MissingValue::By;

constexpr std::pair<const char*, TimePart> kParts[] = {
    {"hour", TimePart::hour},
    {"weekday", TimePart::weekday},
    {"day_of_year", TimePart::day_of_year}};

constexpr double kDay = 86400;
constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();
/// Of the days that std::chrono's calendar knows: years up to 32767.
constexpr double kMostDays = 11e6;

TimePart part_named(const std::string& name) {
  for (const auto& [known, part] : kParts)
    if (name == known) return part;
  fail_assertion("name", "a part was checked", __FILE__, __LINE__);
}

void check_parts(Spec& section, const Times& time) {
  for (std::size_t i = 0; i < time.parts.size(); ++i) {
    bool known = false;
    for (const auto& [name, part] : kParts) known |= time.parts[i] == name;
    if (!known)
      section.refuse("parts", "found \"" + time.parts[i] + "\"",
                     "use \"hour\", \"weekday\" and \"day_of_year\"");
    for (std::size_t j = 0; j < i; ++j)
      if (time.parts[i] == time.parts[j])
        section.refuse("parts", "\"" + time.parts[i] + "\" appears twice",
                       "name it once");
  }
}

void check_time(Spec& section, const Times& time) {
  check_parts(section, time);
  if (!time.parts.empty() &&
      (time.missing.by == By::nan || time.missing.by == By::number))
    section.refuse("missing",
                   "found " + shown_missing(time.missing).dump() +
                       ", but parts are sines and cosines",
                   "use \"zero\" or \"mask\"");
}

SettingsTable<Times> own_settings() {
  SettingsTable<Times> table;
  table
      .text("column", &Times::column,
            "Column of timestamps, dates, ISO-8601 texts or seconds since 1970")
      .required()
      .not_empty()
      .texts("parts", &Times::parts,
             "Cyclic parts in UTC, each as a sine and a cosine: \"hour\" (of "
             "the day, with its fraction), \"weekday\" and \"day_of_year\". "
             "Default: no parts, but seconds since 1970");
  add_missing(table, &Times::missing, {By::zero, By::nan, By::mask},
              "Replacement for NULL, used for all parts. mask: 0, and "
              "NAME_mask is 0 there, else 1. Default: a row with NULL is bad");
  return table.check(check_time);
}

const SettingsTable<Times>& time_settings() {
  static const SettingsTable<Times> table =
      SettingsTable<Times>()
          .section("time", own_settings(),
                   "Turns a column of times into seconds since 1970 UTC, "
                   "float64 [], or with parts into float32 [2 x parts].")
          .required();
  return table;
}

class Parser final : public FieldParser {
 public:
  Parser(std::string name, std::size_t column, bool takes_missing)
      : name_(std::move(name)),
        column_(column),
        takes_missing_(takes_missing) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[column_];
    out.width = sizeof(double);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      double seconds = column.valid(row) ? column.as_float64(row) : 0;
      if (takes_missing_ && (!column.valid(row) || std::isnan(seconds))) {
        seconds = kNoTime;
      } else if (!column.valid(row)) {
        reject(row,
               "is NULL, expected a time; \"missing\" sets a replacement, as "
               "in {\"time\": {\"column\": " +
                   Json(name_).dump() + ", \"missing\": \"mask\"}}",
               faults);
      } else if (!(std::abs(seconds) < kMostDays * kDay)) {
        reject(row,
               "holds " + Json(seconds).dump() +
                   " seconds since 1970, expected a year up to 32000",
               faults);
        seconds = 0;
      }
      out.bytes.append_value(seconds + 0.0);  // -0.0 becomes 0.0
    }
  }

 private:
  void reject(std::int64_t row, std::string why, Faults& faults) const {
    faults.reject({.row = row, .place = name_, .why = std::move(why)});
  }

  const std::string name_;
  const std::size_t column_;
  const bool takes_missing_;
};

/// The tensor of the times, and their mask where there is one.
RowLayout layout_of(const std::string& name, const Times& time) {
  TensorSpec tensor{.name = name, .dtype = Dtype::float64};
  if (!time.parts.empty()) {
    tensor.dtype = Dtype::float32;
    tensor.row_shape = {2 * std::ssize(time.parts)};
  }
  std::vector<TensorSpec> tensors = {std::move(tensor)};
  if (time.missing.masked())
    tensors.push_back({.name = name + "_mask", .row_shape = {}});
  RowLayout layout;
  layout.append(std::move(tensors));
  return layout;
}

class Encoder final : public FieldEncoder {
 public:
  explicit Encoder(const Times& time)
      : missing_(time.missing), layout_(layout_of({}, time)) {
    for (const std::string& part : time.parts)
      parts_.push_back(part_named(part));
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults&) override {
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      double seconds = 0;
      std::memcpy(&seconds, rows[i].data(), sizeof(seconds));
      const bool present = !std::isnan(seconds);
      if (missing_.masked()) {
        const float mask = present ? 1 : 0;
        std::memcpy(to + layout_.tensors[1].offset, &mask, sizeof(mask));
      }
      if (parts_.empty()) {
        if (!present) seconds = missing_.value();
        std::memcpy(to, &seconds, sizeof(seconds));
        continue;
      }
      if (!present) {
        std::memset(to, 0, layout_.tensors[0].bytes);
        continue;
      }
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        const double angle =
            2 * std::numbers::pi * turns_of(parts_[p], seconds);
        const float pair[] = {static_cast<float>(std::sin(angle)),
                              static_cast<float>(std::cos(angle))};
        std::memcpy(to + p * sizeof(pair), pair, sizeof(pair));
      }
    }
  }

 private:
  const MissingValue missing_;
  const RowLayout layout_;
  std::vector<TimePart> parts_;
};

class BoundTime final : public BoundField {
 public:
  BoundTime(Times time, std::size_t column)
      : time_(std::move(time)), column_(column) {}
  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(time_.column, column_,
                                    !time_.missing.bad());
  }
  std::unique_ptr<FieldEncoder> encoder(const Json&,
                                        const std::string&) const override {
    return std::make_unique<Encoder>(time_);
  }

 private:
  const Times time_;
  const std::size_t column_;
};

FieldFacts facts_of(const std::string& name, const Times& time) {
  return {.columns = {{.column = time.column,
                       .as = ReadAs::number,
                       .setting = "fields." + name + ".time.column"}},
          .stored = {.tensors = layout_of(name, time).tensors},
          .recipe = time_settings().shown(time),
          .built_in = true};
}

class TimeKind final : public FieldKind {
 public:
  TimeKind(std::string name, Times time)
      : FieldKind(facts_of(name, time)),
        name_(std::move(name)),
        time_(std::move(time)) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    if (const ColumnInfo& info = columns.info[0]; info.boolean)
      throw Error(ErrorKind::request,
                  {.code = "fields.time",
                   .what = "cannot use the settings",
                   .where = "fields." + name_ + ".time.column",
                   .why = "column '" + info.name + "' (" + info.declared +
                          ") holds booleans, not times",
                   .next = "name a column of timestamps, dates, ISO-8601 texts "
                           "or seconds since 1970"});
    return std::make_shared<BoundTime>(time_, columns.at[0]);
  }

 private:
  const std::string name_;
  const Times time_;
};

}  // namespace

double turns_of(TimePart part, double seconds) {
  using namespace std::chrono;
  const double day = std::floor(seconds / kDay);
  switch (part) {
    case TimePart::hour:
      return (seconds - day * kDay) / kDay;
    case TimePart::weekday: {
      const double monday = day + 3;  // 1970-01-01 was a Thursday
      return (monday - std::floor(monday / 7) * 7) / 7;
    }
    case TimePart::day_of_year:
      break;
  }
  const sys_days date{days{static_cast<days::rep>(day)}};
  const year of = year_month_day(date).year();
  const sys_days first = of / January / 1;
  return static_cast<double>((date - first).count()) /
         (of.is_leap() ? 366 : 365);
}

std::shared_ptr<const FieldKind> make_time(std::string name, Times time) {
  return std::make_shared<TimeKind>(std::move(name), std::move(time));
}

FieldDescriptor time_field() {
  return describe_field<Times, time_settings, make_time>("time");
}

}  // namespace penstock
