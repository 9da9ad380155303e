#include <array>
#include <utility>

#include "penstock/transforms/augment/augment.h"

namespace penstock {
namespace {

constexpr std::int64_t kMost = 1 << 20;

/// A range [least, most] of dB, or one number for both.
template <class T>
void add_decibels(SettingsTable<T>& table, const char* key, const char* about) {
  Json list = settings::rule_of("array", "");
  list["items"] = settings::number_rule(-200, 200, "");
  list["minItems"] = 2;
  list["maxItems"] = 2;
  Json rule;
  rule["description"] = about;
  rule["anyOf"] =
      Json(Json::Array{settings::number_rule(-200, 200, ""), std::move(list)});
  table.setting(
      key, std::move(rule),
      [](Spec& spec, const SettingSchema& setting, T& to) {
        const Json* found = spec.raw(setting.key);
        if (found == nullptr) return;
        auto number = [&](const Json& json) {
          if (!json.is_number() || json.number() < -200 || json.number() > 200)
            spec.refuse(setting.key, "found " + found->dump(),
                        "write dB from -200 to 200: [10, 30]");
          return json.number();
        };
        const bool two = found->is_array() && found->array().size() == 2;
        to.least = number(two ? found->array()[0] : *found);
        to.most = number(two ? found->array()[1] : *found);
        if (to.least > to.most)
          spec.refuse(setting.key, "found " + found->dump(),
                      "write the smaller number first");
      },
      [](const T& from) {
        return Json(Json::Array{Json(from.least), Json(from.most)});
      });
}

template <class T>
void add_probability(SettingsTable<T>& table) {
  table.number("probability", &T::probability, 0, 1,
               "Probability of the change for a row");
}

SettingsTable<SpecAugment> table_of(SpecAugment) {
  SettingsTable<SpecAugment> table;
  table
      .integer("time_masks", &SpecAugment::time_masks, 0, 1000,
               "Number of masks along time")
      .integer("time_width", &SpecAugment::time_width, 0, kMost,
               "Greatest width of a time mask, in columns")
      .integer("frequency_masks", &SpecAugment::frequency_masks, 0, 1000,
               "Number of masks along frequency")
      .integer("frequency_width", &SpecAugment::frequency_width, 0, kMost,
               "Greatest width of a frequency mask, in rows")
      .integer("time_warp", &SpecAugment::time_warp, 0, kMost,
               "Greatest number of columns by which a point in time is moved. "
               "0: no warping")
      .number("value", &SpecAugment::value, -1e30, 1e30,
              "Value of masked elements")
      .rule("description", "Masks and warps a spectrogram (SpecAugment)");
  return table;
}
SettingsTable<Noise> table_of(Noise) {
  SettingsTable<Noise> table;
  add_decibels(
      table, "snr",
      "Signal-to-noise ratio in dB: a range [least, greatest] or one number");
  add_probability(table);
  table.rule("description", "Adds white noise");
  return table;
}
SettingsTable<Gain> table_of(Gain) {
  SettingsTable<Gain> table;
  add_decibels(table, "db",
               "Gain in dB: a range [least, greatest] or one number");
  add_probability(table);
  table.rule("description", "Makes a sound louder or softer");
  return table;
}
SettingsTable<TimeShift> table_of(TimeShift) {
  SettingsTable<TimeShift> table;
  table
      .number("most", &TimeShift::most, 0, 1,
              "Greatest shift in either direction, as a share of the length")
      .choice("fill", &TimeShift::wraps, {{"wrap", true}, {"zeros", false}},
              "What fills the gap. wrap: the samples that leave at the other "
              "end; zeros: silence");
  add_probability(table);
  table.rule("description", "Shifts a sound in time");
  return table;
}

template <class T>
struct Named;
template <>
struct Named<SpecAugment> {
  static constexpr const char* kName = "spec_augment";
};
template <>
struct Named<Noise> {
  static constexpr const char* kName = "noise";
};
template <>
struct Named<Gain> {
  static constexpr const char* kName = "gain";
};
template <>
struct Named<TimeShift> {
  static constexpr const char* kName = "time_shift";
};

/// Calls `work` with an augmentation of each kind.
template <class Work>
void for_each_kind(Work work) {
  work(SpecAugment{});
  work(Noise{});
  work(Gain{});
  work(TimeShift{});
}

Augmentation read_one(const Json& json, const std::string& path) {
  Spec entry(json, path);
  std::vector<Augmentation> found;
  for_each_kind([&]<class T>(T kind) {
    if (entry.raw(Named<T>::kName) == nullptr) return;
    found.push_back(table_of(kind).parse(entry.section(Named<T>::kName)));
  });
  entry.finish();
  if (found.size() != 1)
    entry.refuse("spec_augment",
                 "the entry names " + std::to_string(found.size()) +
                     " augmentations, expected one of 'spec_augment', "
                     "'noise', 'gain' and 'time_shift'",
                 "give each augmentation its own entry");
  return found[0];
}

}  // namespace

Json augment_rule() {
  Json rule = settings::rule_of(
      "array", "Random changes of train rows, applied in this order");
  Json kinds(Json::Array{});
  for_each_kind([&]<class T>(T kind) {
    kinds.push_back(object_schema({{.key = Named<T>::kName,
                                    .rule = table_of(kind).schema(),
                                    .required = true}}));
  });
  rule["items"]["anyOf"] = std::move(kinds);
  return rule;
}

std::vector<Augmentation> read_augment(Spec& spec,
                                       const SettingSchema& setting) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return {};
  if (!found->is_array())
    spec.refuse(
        setting.key,
        "found " + std::string(found->type_name()) + ", expected a list",
        "for example [{\"gain\": {\"db\": [-6, 6]}}]");
  std::vector<Augmentation> list;
  for (const Json& json : found->array())
    list.push_back(read_one(json, spec.path_of(setting.key) + "[" +
                                      std::to_string(list.size()) + "]"));
  return list;
}

Json show_augment(const std::vector<Augmentation>& list) {
  if (list.empty()) return {};
  Json shown(Json::Array{});
  for (const Augmentation& one : list)
    std::visit(
        [&]<class T>(const T& of) {
          Json entry(Json::Object{});
          entry[Named<T>::kName] = table_of(T{}).shown(of);
          shown.push_back(std::move(entry));
        },
        one);
  return shown;
}

}  // namespace penstock
