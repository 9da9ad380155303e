#include "penstock/transforms/numbers/numbers_settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock {
namespace {

constexpr std::int64_t kMostBuckets = 65'536;

using Missing = Numbers::Missing;
using Quantile = Numbers::Quantile;

const std::vector<Missing>& named_missing() {
  static const std::vector<Missing> named = {Missing::mean, Missing::median,
                                             Missing::zero, Missing::nan,
                                             Missing::mask};
  return named;
}

void read_missing_into(Spec& spec, const SettingSchema& setting, Numbers& to) {
  const MissingValue missing = read_missing(spec, setting, named_missing());
  to.missing = missing.by;
  to.fill = missing.fill;
}

Json show_missing(const Numbers& from) {
  return shown_missing({.by = from.missing, .fill = from.fill});
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
      "array", "Range [least, greatest]: values outside become the nearer end");
  rule["items"]["type"] = "number";
  rule["minItems"] = 2;
  rule["maxItems"] = 2;
  return rule;
}

void read_bucketize(Spec& spec, const SettingSchema& setting, Numbers& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  if (!found->is_array()) {
    to.buckets = spec.integer(setting.key, {}, 2, kMostBuckets);
    return;
  }
  const Json::Array& edges = found->array();
  bool ascending = !edges.empty() && std::ssize(edges) < kMostBuckets &&
                   std::ranges::all_of(edges, &Json::is_number);
  for (std::size_t i = 1; ascending && i < edges.size(); ++i)
    ascending = edges[i - 1].number() < edges[i].number();
  if (!ascending)
    spec.refuse(setting.key, "found " + found->dump().substr(0, 200),
                "write ascending edges, [0, 18, 65], or a number of buckets "
                "with equally many rows each: 10");
  for (const Json& edge : edges) to.edges.push_back(edge.number());
}

Json show_bucketize(const Numbers& from) {
  if (from.buckets > 0) return Json(from.buckets);
  if (from.edges.empty()) return Json();
  Json edges(Json::Array{});
  for (double edge : from.edges) edges.push_back(edge);
  return edges;
}

void read_quantile(Spec& spec, const SettingSchema& setting, Numbers& to) {
  if (spec.raw(setting.key) == nullptr) return;
  to.quantile = spec.choice(setting.key, {"uniform", "normal"}) == "normal"
                    ? Quantile::normal
                    : Quantile::uniform;
}

Json show_quantile(const Numbers& from) {
  if (from.quantile == Quantile::none) return Json();
  return from.quantile == Quantile::normal ? "normal" : "uniform";
}

Json bucketize_rule() {
  Json edges = settings::rule_of("array", "Ascending edges between buckets");
  edges["items"]["type"] = "number";
  edges["minItems"] = 1;
  Json rule;
  rule["description"] =
      "Turns values into int64 bucket numbers: by the given edges, or into the "
      "given number of buckets with equally many train rows each";
  rule["oneOf"].push_back(std::move(edges));
  rule["oneOf"].push_back(settings::integer_rule(2, kMostBuckets, ""));
  return rule;
}

/// What takes the place of a number: at most one of these.
std::vector<const char*> replacements(const Numbers& numbers) {
  std::vector<const char*> found;
  for (auto [key, set] :
       {std::pair("standardize", numbers.standardize),
        std::pair("min_max", numbers.min_max),
        std::pair("bucketize", numbers.bucketized()),
        std::pair("quantile", numbers.quantile != Quantile::none)})
    if (set) found.push_back(key);
  return found;
}

void check_maths(Spec& section, const Numbers& numbers) {
  if (auto set = replacements(numbers); set.size() > 1)
    section.refuse(set[1],
                   "found " + section.raw(set[1])->dump() + ", and " + set[0] +
                       " is " + section.raw(set[0])->dump(),
                   "choose one of them");
  if (numbers.bucketized() && section.has("dtype"))
    section.refuse(
        "dtype",
        "found " + section.raw("dtype")->dump() + ", but buckets are int64",
        "leave it out");
  if (numbers.bucketized() && numbers.missing == Missing::nan)
    section.refuse("missing", "found \"nan\", but no bucket holds NaN",
                   "use \"mask\" or a replacement");
  if (numbers.missing == Missing::number && !numbers.maths.takes(numbers.fill))
    section.refuse(
        "missing",
        "found " + Json(numbers.fill).dump() + ", which has no log1p",
        "use a number above -1, or \"mean\"");
}

/// Integers hold neither NaN nor a mean.
void check_integers(Spec& section, const Numbers& numbers) {
  check_maths(section, numbers);
  if (!is_integer(numbers.dtype)) return;
  const std::string but =
      ", but dtype is \"" + std::string(name_of(numbers.dtype)) + "\"";
  for (auto [key, set] :
       {std::pair("standardize", numbers.standardize),
        std::pair("min_max", numbers.min_max),
        std::pair("quantile", numbers.quantile != Quantile::none),
        std::pair("log1p", numbers.maths.log1p),
        std::pair("clip", numbers.maths.clips())})
    if (set)
      section.refuse(key, "found " + section.raw(key)->dump() + but,
                     "use float32 or float64, or leave it out");
  const bool whole = std::abs(numbers.fill) < 0x1p63 &&
                     numbers.fill == std::trunc(numbers.fill);
  if (numbers.missing == Missing::mean || numbers.missing == Missing::median ||
      numbers.missing == Missing::nan || !whole ||
      (numbers.dtype == Dtype::uint64 && numbers.fill < 0))
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
               {"uint64", Dtype::uint64},
               {"uint32", Dtype::uint32},
               {"uint16", Dtype::uint16},
               {"uint8", Dtype::uint8},
               {"bool", Dtype::boolean},
               {"float16", Dtype::float16}},
              "Type of the tensor's elements")
      .setting("clip", clip_rule(), read_clip, show_clip)
      .setting(
          "log1p",
          settings::rule_of("boolean", "Whether values become log(1 + value)"),
          [](Spec& spec, const SettingSchema& setting, Numbers& to) {
            to.maths.log1p = spec.boolean(setting.key, false);
          },
          [](const Numbers& from) {
            return from.maths.log1p ? Json(true) : Json();
          })
      .boolean("standardize", &Numbers::standardize,
               "Whether values become (value - mean) / standard deviation over "
               "the train rows of each column. Booleans stay 0 and 1")
      .setting(
          "min_max",
          settings::rule_of(
              "boolean",
              "Whether values are scaled so that the train rows cover 0 to 1"),
          [](Spec& spec, const SettingSchema& setting, Numbers& to) {
            to.min_max = spec.boolean(setting.key, false);
          },
          [](const Numbers& from) {
            return from.min_max ? Json(true) : Json();
          })
      .setting("bucketize", bucketize_rule(), read_bucketize, show_bucketize)
      .setting("quantile",
               settings::choice_rule(
                   {"uniform", "normal"},
                   "Replaces a value by its rank among the train rows. "
                   "uniform: as a number from 0 to 1; normal: as the quantile "
                   "of a standard normal distribution"),
               read_quantile, show_quantile)
      .setting(
          "missing",
          missing_rule(
              named_missing(),
              "Replacement for NULL and NaN. mask: 0, and "
              "NAME_mask is 0 there, else 1. Default: a row with one is bad"),
          read_missing_into, show_missing)
      .check(check_integers);
}

}  // namespace

bool is_integer(Dtype dtype) {
  return dtype != Dtype::float32 && dtype != Dtype::float64 &&
         dtype != Dtype::float16;
}

const SettingsTable<Numbers>& numbers_settings(bool single) {
  static const SettingsTable<Numbers> many = with_rest(
      SettingsTable<Numbers>().names("columns", &Numbers::columns,
                                     "Columns of numbers or booleans, which "
                                     "become the tensor's last dimension"));
  static const SettingsTable<Numbers> one = with_rest(
      SettingsTable<Numbers>()
          .setting(
              "column",
              settings::rule_of("string",
                                "Column of numbers or booleans, whose tensor "
                                "has one number per row"),
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

}  // namespace penstock
