#include <algorithm>
#include <charconv>
#include <limits>

#include "penstock/base/settings.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

constexpr double kHourMs = 3.6e6;
constexpr int kMostGpus = 1023;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

const std::vector<std::pair<std::string, std::string>> kKinds = {
    {"auto", "auto"},
    {"cpu", "cpu"},
    {"sim", "sim"},
    {"cuda", "cuda"},
    {"gpu", "cuda"}};

std::vector<std::string> names_of_kinds() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kKinds) names.push_back(name);
  return names;
}

/// The object form of `step_ms`, for steps that are drawn.
SettingsTable<DeviceSpec> drawn_steps() {
  return SettingsTable<DeviceSpec>()
      .number("mean", &DeviceSpec::step_ms, 0, kHourMs,
              "Mean duration of a step, in milliseconds")
      .required()
      .number("deviation", &DeviceSpec::step_deviation_ms, 0, kHourMs,
              "Standard deviation of the duration of a step, in milliseconds");
}

Json step_rule() {
  Json rule;
  rule["description"] =
      "Duration of a step of a simulated device, in milliseconds: a number, or "
      "an object for normally distributed durations";
  rule["oneOf"].push_back(settings::number_rule(0, kHourMs, ""));
  rule["oneOf"].push_back(drawn_steps().schema());
  return rule;
}

void read_step(Spec& spec, const SettingSchema& setting, DeviceSpec& device) {
  const Json* step = spec.raw(setting.key);
  if (step != nullptr && !step->is_number() && !step->is_object())
    spec.refuse(setting.key,
                "found " + std::string(step->type_name()) +
                    ", expected a number, or an object with 'mean' and "
                    "'deviation'",
                "write milliseconds, as in \"step_ms\": 75");
  if (step == nullptr || step->is_number()) {
    device.step_ms = spec.number(setting.key, device.step_ms, 0, kHourMs);
    return;
  }
  Spec drawn = spec.section(setting.key);
  drawn_steps().read(drawn, device);
  drawn.finish();
}

Json show_step(const DeviceSpec& device) {
  return device.step_deviation_ms == 0 ? Json(device.step_ms)
                                       : drawn_steps().shown(device);
}

/// Where nothing else is given, only a simulated device has a limit.
double memory_gib_of(const std::string& kind) {
  return kind == "sim" ? DeviceSpec().memory_gib : kNoLimit;
}

void read_memory(Spec& spec, const SettingSchema& setting, DeviceSpec& device) {
  device.memory_gib = spec.raw(setting.key) == nullptr
                          ? memory_gib_of(device.kind)
                          : spec.number(setting.key, std::nullopt, 1e-3, 1e5);
}

Json show_memory(const DeviceSpec& device) {
  return device.memory_gib == kNoLimit ? Json() : Json(device.memory_gib);
}

const SettingsTable<DeviceSpec>& device_settings() {
  static const SettingsTable<DeviceSpec> table =
      SettingsTable<DeviceSpec>({.memory_gib = kNoLimit})
          .choice("kind", &DeviceSpec::kind, kKinds,
                  "Kind of device. auto: a GPU if there is one, else cpu; sim: "
                  "a simulated accelerator; gpu: the same as cuda")
          .integer("number", &DeviceSpec::number, 0, kMostGpus,
                   "Number of the GPU, for cuda. Default: LOCAL_RANK, or the "
                   "current GPU")
          .setting("step_ms", step_rule(), read_step, show_step)
          .number("copy_gb_s", &DeviceSpec::copy_gb_s, 1e-3, 1e5,
                  "Bandwidth of copies to a simulated device, in GB/s")
          .setting("memory_gib",
                   settings::number_rule(
                       1e-3, 1e5,
                       "Memory in GiB. sim: of the simulated device, 8 by "
                       "default; cpu: what the model's tensors and the "
                       "batches may take; cuda: what PyTorch may take of "
                       "each GPU. "
                       "Default: no limit"),
                   read_memory, show_memory)
          .choice("clock", &DeviceSpec::virtual_time,
                  {{"wall", false}, {"virtual", true}},
                  "Clock of a simulated device. wall: real time; virtual: time "
                  "that passes only while something waits for it");
  return table;
}

/// Of "cuda:1" or "gpu:1".
std::optional<int> number_of_gpu(std::string_view name) {
  std::size_t colon = name.find(':');
  if (colon == name.npos) return std::nullopt;
  std::string_view kind = name.substr(0, colon),
                   digits = name.substr(colon + 1);
  int number = 0;
  auto [end, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  bool is_number = failed == std::errc() && !digits.empty() &&
                   end == digits.data() + digits.size() && number >= 0 &&
                   number <= kMostGpus;
  if (!is_number || (kind != "cuda" && kind != "gpu")) return std::nullopt;
  return number;
}

}  // namespace

Json device_schema() {
  Json schema;
  schema["description"] =
      "The device that batches are made ready for. auto picks a GPU or the "
      "CPU, never the simulated device.";
  schema["oneOf"].push_back(settings::choice_rule(names_of_kinds(), ""));
  Json numbered = settings::rule_of("string", "A GPU by its number");
  numbered["pattern"] = "^(cuda|gpu):[0-9]{1,4}$";
  schema["oneOf"].push_back(std::move(numbered));
  schema["oneOf"].push_back(device_settings().schema());
  return schema;
}

DeviceSpec parse_device_spec(const Json& section, const std::string& path) {
  if (section.is_object()) return device_settings().parse(Spec(section, path));
  Json holder(Json::Object{{path, section}});
  Spec spec(holder, "");
  if (!section.is_null() && !section.is_string())
    spec.refuse(path,
                "found " +
                    (section.is_array() ? std::string(section.type_name())
                                        : section.dump()) +
                    ", expected the name of a device or an object",
                R"(write one, as in "device": "auto")");
  DeviceSpec device{.memory_gib = kNoLimit};
  if (section.is_null()) return device;
  std::string name = spec.text(path);
  if (std::optional<int> number = number_of_gpu(name)) {
    device.kind = "cuda";
    device.number = number;
    return device;
  }
  name = spec.choice(path, names_of_kinds());
  device.kind = std::ranges::find(kKinds, name,
                                  &std::pair<std::string, std::string>::first)
                    ->second;
  device.memory_gib = memory_gib_of(device.kind);
  return device;
}

}  // namespace penstock
