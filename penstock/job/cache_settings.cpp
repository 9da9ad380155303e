#include "penstock/job/cache_settings.h"

namespace penstock {
namespace {

constexpr double kMostGib = 1 << 20;
constexpr double kBytesPerGib = 1 << 30;

const std::vector<std::string> kTiers = {"auto", "device", "pinned",
                                         "ram",  "disk",   "none"};

struct Budget {
  const char* key;
  std::optional<std::size_t> TierBudgets::*member;
  const char* about;
};
constexpr Budget kBudgets[] = {
    {"device_gib", &TierBudgets::device,
     "Limit in GiB of rows kept on the device"},
    {"pinned_gib", &TierBudgets::pinned,
     "Limit in GiB of rows kept in pinned memory"},
    {"ram_gib", &TierBudgets::ram, "Limit in GiB of rows kept in host memory"},
    {"disk_gib", &TierBudgets::disk, "Limit in GiB of the store on disk"}};

Json cache_rule() {
  std::vector<SettingSchema> settings;
  for (const Budget& budget : kBudgets)
    settings.push_back(
        {.key = budget.key,
         .rule = settings::number_rule(
             0, kMostGib,
             std::string(budget.about) +
                 ". Default: what is free. 0: this tier is not used")});
  settings.push_back(
      {.key = "dir", .rule = settings::rule_of("string", "As `cache_dir`")});
  Json rule{Json::Object{}};
  rule["description"] =
      "Where prepared rows are kept between epochs: auto, the fastest memory "
      "that has room, or an object with limits for it; one tier by its name; "
      "none, which reads and prepares rows each time";
  rule["oneOf"].push_back(settings::choice_rule(kTiers, ""));
  rule["oneOf"].push_back(object_schema(settings));
  return rule;
}

void read_budgets(Spec section, LoaderSection& to) {
  for (const Budget& budget : kBudgets)
    if (section.raw(budget.key) != nullptr)
      to.budgets.*budget.member = static_cast<std::size_t>(
          section.number(budget.key, std::nullopt, 0, kMostGib) * kBytesPerGib);
  if (section.raw("dir") != nullptr) to.cache_dir = section.text("dir");
  section.finish();
}

void read_cache(Spec& spec, const SettingSchema& setting, LoaderSection& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr) return;
  if (given->is_object())
    read_budgets(spec.section(setting.key), to);
  else
    to.cache = spec.choice(setting.key, kTiers);
}

Json shown_cache(const LoaderSection& from) {
  if (!from.budgets.any()) return Json(from.cache);
  Json shown{Json::Object{}};
  for (const Budget& budget : kBudgets)
    if (const auto& bytes = from.budgets.*budget.member)
      shown[budget.key] = static_cast<double>(*bytes) / kBytesPerGib;
  return shown;
}

}  // namespace

SettingsTable<LoaderSection>& add_cache_settings(
    SettingsTable<LoaderSection>& table) {
  table.setting("cache", cache_rule(), read_cache, shown_cache);
  return table.setting(
      "cache_dir",
      settings::rule_of("string",
                        "Folder for stores on disk and temporary files. "
                        "Default: penstock/stores in the user's cache folder"),
      [](Spec& spec, const SettingSchema& setting, LoaderSection& to) {
        if (spec.raw(setting.key) == nullptr) return;
        if (!to.cache_dir.empty())
          spec.refuse(setting.key, "'loader.cache.dir' also names a folder",
                      "leave one of the two out");
        to.cache_dir = settings::read_text(spec, setting, {});
      },
      [](const LoaderSection& from) {
        return from.cache_dir.empty() ? Json() : Json(from.cache_dir);
      });
}

}  // namespace penstock
