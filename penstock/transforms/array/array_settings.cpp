#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/array/array.h"

namespace penstock {
namespace {

using By = MissingValue::By;

constexpr std::int64_t kMostElements = std::int64_t{1} << 28;

/// `Value` is a Dtype, or an optional one.
template <class Value>
std::vector<std::pair<std::string, Value>> dtypes() {
  return {{"float32", Dtype::float32}, {"float64", Dtype::float64},
          {"int64", Dtype::int64},     {"int32", Dtype::int32},
          {"int16", Dtype::int16},     {"int8", Dtype::int8},
          {"uint64", Dtype::uint64},   {"uint32", Dtype::uint32},
          {"uint16", Dtype::uint16},   {"uint8", Dtype::uint8},
          {"float16", Dtype::float16}, {"bfloat16", Dtype::bfloat16}};
}

Json shape_rule() {
  Json rule =
      settings::rule_of("array",
                        "Shape of a row or, where rows differ in length, of "
                        "one element. Default: [], a single number");
  rule["items"] = settings::integer_rule(1, kMostElements, "");
  return rule;
}

void read_shape(Spec& spec, const SettingSchema& setting, Arrays& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  auto refuse = [&] {
    spec.refuse(setting.key, "found " + found->dump(),
                "write its dimensions, with at most 2^28 elements: [2, 128]");
  };
  if (!found->is_array()) refuse();
  std::int64_t elements = 1;
  for (const Json& size : found->array()) {
    const auto* number = std::get_if<std::int64_t>(&size.value());
    if (number == nullptr || *number < 1 || *number > kMostElements / elements)
      refuse();
    elements *= *number;
    to.shape.push_back(*number);
  }
}

Json show_shape(const Arrays& from) {
  Json shape(Json::Array{});
  for (std::int64_t size : from.shape) shape.push_back(size);
  return shape;
}

const SettingsTable<Arrays>& window_settings() {
  static const SettingsTable<Arrays> table =
      SettingsTable<Arrays>()
          .integer("length", &Arrays::window, 1, kMostElements,
                   "Elements in a window")
          .required()
          .integer("stride", &Arrays::stride, 1, kMostElements,
                   "Elements from the start of a window to the start of the "
                   "next. Default: the length, so that windows do not overlap")
          .check([](Spec&, Arrays& array) {
            if (array.stride == 0) array.stride = array.window;
          });
  return table;
}

Json window_rule() {
  Json rule = window_settings().schema();
  rule["description"] =
      "Reads the column as one long array and cuts rows out of it as windows";
  return rule;
}

void read_window(Spec& spec, const SettingSchema& setting, Arrays& to) {
  if (spec.raw(setting.key) == nullptr) return;
  Spec section = spec.section(setting.key);
  window_settings().read(section, to);
  section.finish();
}

Json show_window(const Arrays& from) {
  return from.window > 0 ? window_settings().shown(from) : Json();
}

void check_missing(Spec& section, const Arrays& array) {
  const By by = array.missing.by;
  const bool equal = array.lengths == Lengths::equal;
  if (by != By::bad && equal == (by == By::empty))
    section.refuse("missing",
                   "found " + shown_missing(array.missing).dump() +
                       (equal ? ", but all rows have the same length"
                              : ", but rows differ in length"),
                   equal ? "use \"zero\", \"nan\", \"mask\" or a number"
                         : "use \"empty\"");
  if (by == By::mask && !array.augment.empty())
    section.refuse("missing",
                   "found \"mask\", which cannot be combined with \"augment\"",
                   "use \"zero\"");
}

/// What the settings mean to each other.
void check_array(Spec& section, Arrays& array) {
  if (array.ragged != Arrays::Ragged::none) {
    const Lengths lengths =
        array.ragged == Arrays::Ragged::pad ? Lengths::padded : Lengths::packed;
    if (section.has("lengths") && array.lengths != lengths)
      section.refuse("ragged", "\"lengths\" has a different meaning",
                     "write only one of them");
    array.lengths = lengths;
  }
  const bool equal = array.lengths == Lengths::equal;
  check_missing(section, array);
  if (array.window > 0 && !equal)
    section.refuse("window", "windows have equal length",
                   "leave \"lengths\" and \"ragged\" out");
  if (array.window > 0 && elements_of(array.row_shape()) > kMostElements)
    section.refuse("window", "a window has more than 2^28 numbers",
                   "use shorter windows");
  if (array.augment.empty()) return;
  if (!equal || array.dtype != Dtype::float32)
    section.refuse("augment", "augmentation needs float32 rows of equal length",
                   "leave \"dtype\", \"lengths\" and \"ragged\" out");
  for (const Augmentation& one : array.augment) {
    const auto* masks = std::get_if<SpecAugment>(&one);
    if (masks != nullptr && masks->frequency_masks > 0 &&
        array.row_shape().size() < 2)
      section.refuse("augment",
                     "rows with one dimension have times but no frequencies",
                     "leave \"frequency_masks\" out");
  }
}

SettingsTable<Arrays> make_settings() {
  SettingsTable<Arrays> table;
  table
      .text("column", &Arrays::column,
            "Column of lists of numbers, tensors or bytes")
      .required()
      .not_empty()
      .setting("shape", shape_rule(), read_shape, show_shape)
      .choice("lengths", &Arrays::lengths,
              {{"equal", Lengths::equal},
               {"padded", Lengths::padded},
               {"packed", Lengths::packed}},
              "Whether rows differ in length. equal: all have the same shape; "
              "padded: zeros extend each to the longest of its batch; packed: "
              "they follow one another without padding")
      .choice("dtype", &Arrays::dtype, dtypes<Dtype>(),
              "Type of the tensor's elements")
      .choice("of", &Arrays::of, dtypes<std::optional<Dtype>>(),
              "Type of the little-endian numbers that a column of bytes holds")
      .setting("window", window_rule(), read_window, show_window)
      .choice(
          "ragged", &Arrays::ragged,
          {{"pad", Arrays::Ragged::pad}, {"offsets", Arrays::Ragged::offsets}},
          "As `lengths`, with a tensor that tells rows apart. pad: padded, "
          "with a mask NAME_mask; offsets: packed, with row starts "
          "NAME_offsets");
  add_missing(table, &Arrays::missing, {By::zero, By::nan, By::mask, By::empty},
              "Replacement for NULL, used for every number of the row. mask: "
              "zeros, and NAME_mask is 0 there, else 1; empty: no elements, "
              "where rows differ in length. Default: a row with NULL is bad");
  table.setting(
      "finite",
      settings::rule_of(
          "boolean",
          "Whether a row with NaN or an infinity is bad. Default: true"),
      [](Spec& spec, const SettingSchema& setting, Arrays& to) {
        to.finite = spec.boolean(setting.key, true);
      },
      [](const Arrays& from) { return from.finite ? Json() : Json(false); });
  add_augment(table, &Arrays::augment);
  return table.check(check_array);
}

}  // namespace

const SettingsTable<Arrays>& array_settings() {
  static const SettingsTable<Arrays> table =
      SettingsTable<Arrays>()
          .section("array", make_settings(),
                   "Turns a column of lists of numbers, tensors or bytes into "
                   "a tensor.")
          .required();
  return table;
}

}  // namespace penstock
