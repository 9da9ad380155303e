#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/plugin.h"
#include "penstock/device/cpu/cpu.h"
#include "penstock/device/device.h"
#include "penstock/device/plugin.h"
#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

std::unique_ptr<Device> open_cuda(const DeviceSpec& spec,
                                  const DeviceAllocator& allocator) {
  return load_cuda_plugin(plugin_folders()).open(spec.number, allocator);
}

/// With `auto` a GPU that is not there is no error. One that is there and
/// cannot be used is.
std::unique_ptr<Device> open_best(const DeviceSpec& spec,
                                  const DeviceAllocator& allocator) {
  try {
    return open_cuda(spec, allocator);
  } catch (const Error& error) {
    const std::string& code = error.parts().code;
    bool absent = code == "device.not_built" || code == "device.no_driver" ||
                  code == "device.no_gpu";
    bool unusable = code == "device.old_driver" || code == "device.too_old" ||
                    code == "device.part_version" ||
                    code == "device.part_broken";
    if (!absent && !unusable) throw;
    log(absent ? LogLevel::info : LogLevel::warning,
        "the device is 'cpu': " + std::string(error.what()));
    return open_cpu();
  }
}

}  // namespace

std::unique_ptr<Device> open_device(const DeviceSpec& spec,
                                    const DeviceAllocator& allocator) {
  if (spec.kind == "auto") return open_best(spec, allocator);
  if (spec.kind == "cpu") return open_cpu();
  if (spec.kind == "sim") return open_sim(spec);
  if (spec.kind == "cuda" || spec.kind == "gpu")
    return open_cuda(spec, allocator);
  throw Error(ErrorKind::request,
              {.code = "device.unknown",
               .what = "cannot open device '" + spec.kind + "'",
               .where = "device",
               .why = "no kind of device has this name",
               .next = "use auto, cpu, sim or cuda"});
}

}  // namespace penstock
