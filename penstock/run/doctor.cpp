#include "penstock/run/doctor.h"

#include "penstock/base/base.h"
#include "penstock/device/device.h"
#include "penstock/monitor/monitor.h"
#include "penstock/run/trainer_plugin.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

Json part(const char* name, bool there, const std::string& says) {
  Json json;
  json["part"] = name;
  json["there"] = there;
  json["says"] = says;
  return json;
}

Json source_part(const SourceKind& kind) {
  try {
    load_source_plugin(kind.name);
    return part(kind.name.c_str(), true, "ready");
  } catch (const Error& error) {
    return part(kind.name.c_str(), false, error.what());
  }
}

Json device_part(const char* kind) {
  try {
    DeviceSpec spec;
    spec.kind = kind;
    std::unique_ptr<Device> device = open_device(spec);
    std::optional<GpuUse> gpu = read_gpu_use(*device);
    if (!gpu) return part(kind, true, device->name());
    Json json = part(kind, true, device->name() + ", " + gpu->text());
    json["gpu"] = gpu->json();
    return json;
  } catch (const Error& error) {
    return part(kind, false, error.what());
  }
}

Json trainer_part() {
  try {
    return part("trainer", true, load_trainer().build_info());
  } catch (const Error& error) {
    return part("trainer", false, error.what());
  }
}

}  // namespace

Json doctor() {
  Json json;
  json["machine"] = machine_json();
  for (const SourceKind& kind : source_kinds())
    json["parts"].push_back(source_part(kind));
  json["parts"].push_back(device_part("cpu"));
  json["parts"].push_back(device_part("sim"));
  json["parts"].push_back(device_part("cuda"));
  json["parts"].push_back(trainer_part());
  return json;
}

}  // namespace penstock
