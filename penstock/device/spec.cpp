#include "penstock/base/spec.h"

#include "penstock/device/device.h"

namespace penstock {
namespace {

constexpr double kHourMs = 3.6e6;

std::string parse_kind(Spec& spec, std::string_view key) {
  std::string kind =
      spec.choice(key, "auto", {"auto", "cpu", "sim", "cuda", "gpu"});
  return kind == "gpu" ? "cuda" : kind;
}

// A number, or {"mean", "deviation"} for steps that are drawn.
void parse_step(Spec& spec, DeviceSpec& device) {
  const Json* step = spec.raw("step_ms");
  if (step != nullptr && !step->is_number() && !step->is_object())
    spec.refuse("step_ms",
                "found " + std::string(step->type_name()) +
                    ", expected a number, or an object with 'mean' and "
                    "'deviation'",
                "write milliseconds, as in \"step_ms\": 75");
  if (step == nullptr || step->is_number()) {
    device.step_ms = spec.number("step_ms", device.step_ms, 0, kHourMs);
    return;
  }
  Spec drawn = spec.section("step_ms");
  device.step_ms = drawn.number("mean", {}, 0, kHourMs);
  device.step_deviation_ms = drawn.number("deviation", 0, 0, kHourMs);
  drawn.finish();
}

}  // namespace

DeviceSpec parse_device_spec(const Json& section, const std::string& path) {
  DeviceSpec device;
  if (!section.is_object()) {
    Json holder(Json::Object{{path, section}});
    Spec spec(holder, "");
    if (!section.is_null() && !section.is_string())
      spec.refuse(path,
                  "found " +
                      (section.is_array() ? std::string(section.type_name())
                                          : section.dump()) +
                      ", expected the name of a device or an object",
                  R"(write one, as in "device": "auto")");
    device.kind = parse_kind(spec, path);
    return device;
  }
  Spec spec(section, path);
  device.kind = parse_kind(spec, "kind");
  parse_step(spec, device);
  device.copy_gb_s = spec.number("copy_gb_s", device.copy_gb_s, 1e-3, 1e5);
  device.memory_gib = spec.number("memory_gib", device.memory_gib, 1e-3, 1e5);
  device.virtual_time =
      spec.choice("clock", "wall", {"wall", "virtual"}) == "virtual";
  spec.finish();
  return device;
}

}  // namespace penstock
