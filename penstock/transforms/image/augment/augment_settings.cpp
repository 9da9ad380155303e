#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/transforms/image/augment/augment.h"

namespace penstock {
namespace {

constexpr double kFar = 1e6;

/// How many numbers a list has, and which.
struct ListRule {
  std::size_t least = 1, most = 2;
  double low = 0, high = kFar;
};

Json list_schema(const ListRule& rule, const std::string& about) {
  Json number = settings::number_rule(rule.low, rule.high, "");
  Json list = settings::rule_of("array", "");
  list["items"] = number;
  list["minItems"] = static_cast<std::int64_t>(rule.least);
  list["maxItems"] = static_cast<std::int64_t>(rule.most);
  Json json;
  json["description"] = about;
  json["anyOf"] = Json(Json::Array{std::move(number), std::move(list)});
  return json;
}

Json list_json(const NumberList& numbers) {
  Json list(Json::Array{});
  for (double number : numbers) list.push_back(number);
  return list;
}

using Table = SettingsTable<Augment>;

/// A setting of one number or a list of them.
void add_list(Table& table, const std::string& key, NumberList Augment::*member,
              ListRule rule, const std::string& about) {
  table.setting(
      key, list_schema(rule, about),
      [=](Spec& spec, const SettingSchema& setting, Augment& to) {
        const Json* found = spec.raw(setting.key);
        if (found == nullptr && setting.required)
          spec.refuse(setting.key, "this key is missing",
                      "write a number, or a list of numbers");
        if (found == nullptr) return;
        NumberList numbers;
        if (found->is_number()) numbers.push_back(found->number());
        if (found->is_array())
          for (const Json& one : found->array())
            numbers.push_back(one.is_number() ? one.number() : NAN);
        const bool single = found->is_number();
        const bool good = (single || numbers.size() >= rule.least) &&
                          !numbers.empty() && numbers.size() <= rule.most &&
                          std::ranges::all_of(numbers, [&](double number) {
                            return number >= rule.low && number <= rule.high;
                          });
        if (!good)
          spec.refuse(
              setting.key, "found " + found->dump(),
              "write a number, or a list of " + std::to_string(rule.least) +
                  " to " + std::to_string(rule.most) + " numbers from " +
                  Json(rule.low).dump() + " to " + Json(rule.high).dump());
        to.*member = std::move(numbers);
      },
      [=](const Augment& from) {
        return (from.*member).empty() ? Json() : list_json(from.*member);
      });
}

/// One number becomes [-number, number].
void about_zero(NumberList& range) {
  if (range.size() == 1) range = {-range[0], range[0]};
}

void check_ascending(Spec& spec, const char* key, const NumberList& range) {
  for (std::size_t at = 0; at + 1 < range.size(); at += 2)
    if (range[at] > range[at + 1])
      spec.refuse(key, "found " + list_json(range).dump(),
                  "write the smaller number first");
}

void add_moving(Table& table) {
  table.choice("interpolation", &Augment::interpolation,
               {{"nearest", Interpolation::nearest},
                {"bilinear", Interpolation::bilinear},
                {"bicubic", Interpolation::bicubic}},
               "How the pixels are interpolated");
  add_list(table, "fill", &Augment::fill, {.most = 3, .high = 255},
           "Value from 0 to 255 of pixels outside the picture: one number, or "
           "one for each channel");
  table.check([](Spec& spec, Augment& augment) {
    if (augment.fill.size() == 2)
      spec.refuse("fill", "found two numbers", "write one number or three");
    for (double byte : augment.fill)
      if (byte != std::floor(byte))
        spec.refuse("fill", "found " + Json(byte).dump(),
                    "write whole numbers from 0 to 255");
  });
}

Table rotation() {
  Table table;
  add_list(table, "degrees", &Augment::degrees, {.low = -kFar},
           "Range [least, greatest], or one number n for [-n, n]");
  table.required();
  add_moving(table);
  return std::move(table.check([](Spec& spec, Augment& augment) {
    about_zero(augment.degrees);
    check_ascending(spec, "degrees", augment.degrees);
  }));
}

Table affine() {
  Table table;
  add_list(table, "degrees", &Augment::degrees, {.low = -kFar},
           "Range [least, greatest], or one number n for [-n, n]");
  table.required();
  add_list(
      table, "translate", &Augment::translate,
      {.least = 2, .most = 2, .high = 1},
      "Greatest shift to the right and down, as shares of width and height");
  add_list(table, "scale", &Augment::scale,
           {.least = 2, .most = 2, .low = 1e-3, .high = 1e3},
           "Range [least, greatest] of the scale");
  add_list(table, "shear", &Augment::shear, {.most = 4, .low = -89, .high = 89},
           "Shear in degrees along x, [least, greatest], followed by two more "
           "numbers for y");
  add_moving(table);
  return std::move(table.check([](Spec& spec, Augment& augment) {
    about_zero(augment.degrees);
    about_zero(augment.shear);
    check_ascending(spec, "degrees", augment.degrees);
    check_ascending(spec, "scale", augment.scale);
    check_ascending(spec, "shear", augment.shear);
    if (augment.translate.size() == 1 || augment.scale.size() == 1)
      spec.refuse(augment.scale.size() == 1 ? "scale" : "translate",
                  "found one number", "write a list of two numbers");
    if (augment.shear.size() == 3)
      spec.refuse("shear", "found three numbers", "write one, two or four");
  }));
}

/// A number b of ColorJitter stands for [1 - b, 1 + b], cut off at 0.
void about_one(NumberList& range) {
  if (range.size() == 1) range = {std::max(0.0, 1 - range[0]), 1 + range[0]};
}

Table color_jitter() {
  Table table;
  const std::string about =
      "Range [least, greatest] of the factor, or one number b for [1 - b, 1 + "
      "b]";
  add_list(table, "brightness", &Augment::brightness, {.high = 100}, about);
  add_list(table, "contrast", &Augment::contrast, {.high = 100}, about);
  add_list(table, "saturation", &Augment::saturation, {.high = 100}, about);
  add_list(table, "hue", &Augment::hue, {.low = -0.5, .high = 0.5},
           "Range [least, greatest], or one number n for [-n, n]");
  return std::move(table.check([](Spec& spec, Augment& augment) {
    for (NumberList Augment::*of :
         {&Augment::brightness, &Augment::contrast, &Augment::saturation})
      about_one(augment.*of);
    about_zero(augment.hue);
    check_ascending(spec, "brightness", augment.brightness);
    check_ascending(spec, "contrast", augment.contrast);
    check_ascending(spec, "saturation", augment.saturation);
    check_ascending(spec, "hue", augment.hue);
  }));
}

Table automatic(bool rand) {
  Table table;
  if (rand)
    table
        .integer("num_ops", &Augment::num_ops, 0, 14,
                 "Number of changes to each picture")
        .integer("magnitude", &Augment::magnitude, 0, 1000,
                 "Strength of the changes, below num_magnitude_bins");
  table.integer("num_magnitude_bins", &Augment::num_magnitude_bins, 2, 1001,
                "Number of steps of the strength");
  add_moving(table);
  if (rand)
    table.check([](Spec& spec, Augment& augment) {
      if (augment.magnitude >= augment.num_magnitude_bins)
        spec.refuse("magnitude", "found " + std::to_string(augment.magnitude),
                    "write a number below num_magnitude_bins, " +
                        std::to_string(augment.num_magnitude_bins));
    });
  return table;
}

Table gaussian_blur() {
  Table table;
  add_list(table, "kernel_size", &Augment::kernel_size, {.low = 1, .high = 255},
           "Size of the kernel in pixels, odd: one number, or [width, height]");
  table.required();
  add_list(table, "sigma", &Augment::sigma, {.low = 1e-3, .high = 1e3},
           "Standard deviation of the kernel in pixels: a range [least, "
           "greatest], or one number");
  return std::move(table.check([](Spec& spec, Augment& augment) {
    if (augment.sigma.size() == 1) augment.sigma.push_back(augment.sigma[0]);
    if (augment.kernel_size.size() == 1)
      augment.kernel_size.push_back(augment.kernel_size[0]);
    check_ascending(spec, "sigma", augment.sigma);
    for (double size : augment.kernel_size)
      if (std::fmod(size, 2) != 1)
        spec.refuse("kernel_size", "found " + Json(size).dump(),
                    "write an odd number");
  }));
}

void read_value(Spec& spec, const SettingSchema& setting, Augment& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  to.random_value = *found == Json("random");
  if (to.random_value) return;
  to.value.clear();
  if (found->is_number()) to.value.push_back(found->number());
  if (found->is_array())
    for (const Json& one : found->array())
      to.value.push_back(one.is_number() ? one.number() : NAN);
  const bool good =
      (to.value.size() == 1 || to.value.size() == 3) &&
      std::ranges::all_of(to.value, [](double of) { return of == of; });
  if (!good)
    spec.refuse(setting.key, "found " + found->dump(),
                "write a number, three of them, or \"random\"");
}

Table random_erasing() {
  Table table({.p = 0.5, .scale = {0.02, 0.33}});
  add_list(table, "scale", &Augment::scale,
           {.least = 2, .most = 2, .low = 1e-6, .high = 1},
           "Range [least, greatest] of the erased share of the area");
  add_list(table, "ratio", &Augment::ratio,
           {.least = 2, .most = 2, .low = 1e-3, .high = 1e3},
           "Range [least, greatest] of height / width of the erased rectangle");
  Json rule;
  rule["description"] =
      "Value of erased pixels, in the numbers of the tensor: one, one for each "
      "channel, or \"random\" for normally distributed noise";
  table.setting("value", std::move(rule), read_value, [](const Augment& from) {
    return from.random_value ? Json("random") : list_json(from.value);
  });
  return std::move(table.check([](Spec& spec, Augment& augment) {
    for (const char* key : {"scale", "ratio"}) {
      const NumberList& of =
          key == std::string("scale") ? augment.scale : augment.ratio;
      if (of.size() != 2)
        spec.refuse(key, "found one number", "write a list of two numbers");
      check_ascending(spec, key, of);
    }
  }));
}

struct Kind {
  const char* name;
  AugmentKind kind;
  Table table;
  const char* about;
};

std::vector<Kind> make_kinds() {
  const Table half({.p = 0.5});
  std::vector<Kind> all = {
      {"rotation", AugmentKind::rotation, rotation(),
       "Rotates a picture about its centre"},
      {"affine", AugmentKind::affine, affine(),
       "Rotates, shifts, scales and shears a picture"},
      {"color_jitter", AugmentKind::color_jitter, color_jitter(),
       "Changes brightness, contrast, saturation and hue in a random order"},
      {"rand_augment", AugmentKind::rand_augment, automatic(true),
       "Applies randomly chosen changes of one strength (RandAugment)"},
      {"trivial_augment_wide", AugmentKind::trivial_augment_wide,
       automatic(false),
       "Applies one randomly chosen change of random strength "
       "(TrivialAugment)"},
      {"gaussian_blur", AugmentKind::gaussian_blur, gaussian_blur(),
       "Blurs a picture with a Gaussian kernel"},
      {"random_erasing", AugmentKind::random_erasing, random_erasing(),
       "Erases a random rectangle"},
      {"adjust_sharpness", AugmentKind::adjust_sharpness,
       Table(half).number("factor", &Augment::factor, 0, 100,
                          "Sharpness. 0: smoothed; 1: unchanged; 2: sharpened"),
       "Changes the sharpness"},
      {"auto_contrast", AugmentKind::auto_contrast, half,
       "Stretches the contrast of each channel to the full range"},
      {"equalize", AugmentKind::equalize, half,
       "Equalizes the histogram of each channel"},
      {"grayscale", AugmentKind::grayscale, Table({.p = 0.1}),
       "Makes a picture grey, with its number of channels"},
      {"invert", AugmentKind::invert, half, "Inverts the colours"},
      {"posterize", AugmentKind::posterize,
       Table(half).integer("bits", &Augment::bits, 1, 8,
                           "Number of highest bits of each byte that are kept"),
       "Reduces the number of bits of each channel"},
      {"solarize", AugmentKind::solarize,
       Table(half).number("threshold", &Augment::threshold, 0, 256,
                          "Least byte that is inverted"),
       "Inverts the bytes above a threshold"},
      {"vertical_flip", AugmentKind::vertical_flip, half,
       "Mirrors a picture top to bottom"},
  };
  for (Kind& kind : all) {
    kind.table.number("p", &Augment::p, 0, 1,
                      "Probability of the change for a picture");
    kind.table.rule("description", kind.about);
  }
  return all;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = make_kinds();
  return all;
}

const Kind& kind_of(const std::string& name, const std::string& path) {
  std::string all;
  for (const Kind& kind : kinds()) {
    if (name == kind.name) return kind;
    all += (all.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw Error(ErrorKind::request, {.code = "settings.value",
                                   .what = "cannot use the settings",
                                   .where = path,
                                   .why = "found '" + name + "'",
                                   .next = "name one of " + all});
}

[[noreturn]] void refuse_entry(const std::string& path, const Json& found) {
  throw Error(
      ErrorKind::request,
      {.code = "settings.value",
       .what = "cannot use the settings",
       .where = path,
       .why = "found " + found.dump(),
       .next = "write a list of transforms, each its name, or an object "
               "with its name and settings: [{\"rotation\": "
               "{\"degrees\": 15}}, \"trivial_augment_wide\"]"});
}

Augment parse_one(const Json& json, const std::string& path) {
  const bool named = json.is_string();
  if (!named && !(json.is_object() && json.object().size() == 1))
    refuse_entry(path, json);
  const std::string name =
      named ? json.string() : std::string(json.object().begin()->first);
  const Kind& kind = kind_of(name, path);
  const Json settings =
      named ? Json(Json::Object{}) : json.object().begin()->second;
  Augment augment =
      kind.table.parse(Spec(settings, path + (named ? "" : "." + name)));
  augment.kind = kind.kind;
  return augment;
}

}  // namespace

int Augment::most_changes() const {
  if (kind == AugmentKind::rand_augment) return num_ops;
  return kind == AugmentKind::color_jitter ? 4 : 1;
}

std::vector<Augment> parse_augments(const Json& list, const std::string& path) {
  if (!list.is_array()) refuse_entry(path, list);
  std::vector<Augment> augments;
  for (const Json& one : list.array()) {
    std::string at = path + "[" + std::to_string(augments.size()) + "]";
    augments.push_back(parse_one(one, at));
  }
  return augments;
}

Json augments_schema() {
  Json::Array entries;
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    names.push_back(kind.name);
    entries.push_back(object_schema(
        {{.key = kind.name, .rule = kind.table.schema(), .required = true}}));
  }
  entries.push_back(settings::choice_rule(
      names, "Name of a change, with its default settings"));
  Json items;
  items["anyOf"] = Json(std::move(entries));
  Json schema = settings::rule_of(
      "array", "Further changes to train pictures, applied in this order");
  schema["items"] = std::move(items);
  return schema;
}

Json augments_json(const std::vector<Augment>& augments) {
  Json list(Json::Array{});
  for (const Augment& augment : augments)
    for (const Kind& kind : kinds())
      if (kind.kind == augment.kind) {
        Json entry;
        entry[kind.name] = kind.table.shown(augment);
        list.push_back(std::move(entry));
      }
  return list;
}

}  // namespace penstock
