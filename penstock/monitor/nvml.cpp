#include "penstock/monitor/nvml.h"

#include <dlfcn.h>

#include <cmath>

#include "penstock/base/log.h"

namespace penstock {
namespace {

/// A problem that the owner of the machine should know of; any other result
/// means that this GPU, driver or user does not get that number.
/// The numbers of nvmlReturn_t, which nvml.h fixes for all versions.
const char* trouble(NvmlCalls::Return result) {
  switch (result) {
    case 15:
      return "the GPU is lost";
    case 16:
      return "the GPU needs a reset";
    case 17:
      return "the system or its cgroup denies access to the GPU";
    case 18:
      return "driver and library have different versions: reboot, or reload "
             "the driver";
    default:
      return nullptr;
  }
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

NvmlCalls open_nvml() {
  NvmlCalls calls;
  void* library = nullptr;
  // The second is its place in the Linux of Windows (WSL).
  for (const char* file :
       {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"})
    if (library == nullptr) library = ::dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return calls;
  find(library, "nvmlInit_v2", calls.init);
  find(library, "nvmlShutdown", calls.shutdown);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", calls.find);
  find(library, "nvmlDeviceGetTemperatureV", calls.temperature_1);
  find(library, "nvmlDeviceGetTemperature", calls.temperature);
  find(library, "nvmlDeviceGetPowerUsage", calls.power);
  find(library, "nvmlDeviceGetUtilizationRates", calls.utilisation);
  find(library, "nvmlDeviceGetMemoryInfo_v2", calls.memory_2);
  find(library, "nvmlDeviceGetMemoryInfo", calls.memory);
  find(library, "nvmlDeviceGetCount_v2", calls.count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", calls.by_index);
  find(library, "nvmlDeviceGetPciInfo_v3", calls.pci);
  find(library, "nvmlDeviceGetName", calls.name);
  find(library, "nvmlDeviceGetClockInfo", calls.clock);
  find(library, "nvmlDeviceGetCurrentClocksEventReasons", calls.clock_reasons);
  if (calls.clock_reasons == nullptr)  // its name before driver 535
    find(library, "nvmlDeviceGetCurrentClocksThrottleReasons",
         calls.clock_reasons);
  find(library, "nvmlDeviceGetPcieThroughput", calls.pcie);
  return calls;
}

/// How the library wants the version of a struct: its size and a number.
template <class Struct>
constexpr unsigned version(unsigned number) {
  return static_cast<unsigned>(sizeof(Struct)) | number << 24;
}

}  // namespace

std::string GpuUse::text() const {
  auto shown = [](std::optional<double> number, const char* unit) {
    return number ? " " + std::to_string(std::lround(*number)) + unit
                  : std::string(" n/a");
  };
  std::optional<double> percent = utilisation;
  if (percent) *percent *= 100;
  return "GPU" + shown(percent, " %") + shown(temperature_c, " C") +
         shown(power_w, " W");
}

Json GpuUse::json() const {
  auto known = [](auto number) { return number ? Json(*number) : Json(); };
  Json json;
  json["temperature_c"] = known(temperature_c);
  json["power_w"] = known(power_w);
  json["utilisation"] = known(utilisation);
  json["memory_used_bytes"] = known(memory_used);
  json["memory_total_bytes"] = known(memory_total);
  return json;
}

const NvmlCalls& nvml_of_this_machine() {
  static const NvmlCalls calls = open_nvml();
  return calls;
}

GpuSensor::GpuSensor(const std::string& pci_bus_id, const NvmlCalls& calls)
    : calls_(calls), pci_bus_id_(pci_bus_id) {
  if (pci_bus_id_.empty() || calls_.init == nullptr ||
      calls_.shutdown == nullptr || calls_.find == nullptr)
    return;
  started_ = good(calls_.init(), "nvmlInit_v2");
  if (!started_) return;
  NvmlCalls::Device found = nullptr;
  if (good(calls_.find(pci_bus_id_.c_str(), &found),
           "nvmlDeviceGetHandleByPciBusId_v2"))
    gpu_ = found;
}

GpuSensor::~GpuSensor() {
  if (started_) calls_.shutdown();
}

GpuUse GpuSensor::read() {
  GpuUse use;
  if (gpu_ == nullptr) return use;
  use.temperature_c = temperature();
  unsigned milliwatts = 0;
  if (calls_.power != nullptr &&
      good(calls_.power(gpu_, &milliwatts), "nvmlDeviceGetPowerUsage"))
    use.power_w = milliwatts / 1000.0;
  NvmlCalls::Utilisation percent{};
  if (calls_.utilisation != nullptr &&
      good(calls_.utilisation(gpu_, &percent), "nvmlDeviceGetUtilizationRates"))
    use.utilisation = percent.gpu / 100.0;
  read_memory(use);
  read_clocks(use);
  return use;
}

std::string GpuSensor::name() {
  char name[96] = {};
  if (gpu_ == nullptr || calls_.name == nullptr ||
      !good(calls_.name(gpu_, name, sizeof(name) - 1), "nvmlDeviceGetName"))
    return {};
  return name;
}

void GpuSensor::read_pcie(GpuUse& use) {
  if (gpu_ == nullptr || calls_.pcie == nullptr) return;
  unsigned kb_s = 0;
  if (good(calls_.pcie(gpu_, 0, &kb_s), "nvmlDeviceGetPcieThroughput"))
    use.pcie_sent = 1e3 * kb_s;
  if (good(calls_.pcie(gpu_, 1, &kb_s), "nvmlDeviceGetPcieThroughput"))
    use.pcie_received = 1e3 * kb_s;
}

void GpuSensor::read_clocks(GpuUse& use) {
  unsigned mhz = 0;
  if (calls_.clock != nullptr &&
      good(calls_.clock(gpu_, 1, &mhz), "nvmlDeviceGetClockInfo"))
    use.sm_clock_mhz = mhz;
  unsigned long long reasons = 0;
  if (calls_.clock_reasons == nullptr ||
      !good(calls_.clock_reasons(gpu_, &reasons),
            "nvmlDeviceGetCurrentClocksEventReasons"))
    return;
  // As nvml.h numbers them.
  static constexpr std::pair<unsigned long long, const char*> kReasons[] = {
      {0x1, "idle"},        {0x2, "clocks set by an application"},
      {0x4, "power limit"}, {0x8, "hardware slowdown"},
      {0x20, "heat"},       {0x40, "heat (hardware)"},
      {0x80, "power brake"}};
  use.clock_reasons.emplace();
  for (const auto& [bit, name] : kReasons)
    if (reasons & bit) use.clock_reasons->emplace_back(name);
}

std::optional<double> GpuSensor::temperature() {
  NvmlCalls::Temperature1 now{.version = version<NvmlCalls::Temperature1>(1),
                              .sensor = 0};
  if (calls_.temperature_1 != nullptr &&
      good(calls_.temperature_1(gpu_, &now), "nvmlDeviceGetTemperatureV"))
    return now.celsius;
  unsigned celsius = 0;
  if (calls_.temperature != nullptr &&
      good(calls_.temperature(gpu_, 0, &celsius), "nvmlDeviceGetTemperature"))
    return celsius;
  return std::nullopt;
}

void GpuSensor::read_memory(GpuUse& use) {
  NvmlCalls::Memory2 now{.version = version<NvmlCalls::Memory2>(2)};
  if (calls_.memory_2 != nullptr &&
      good(calls_.memory_2(gpu_, &now), "nvmlDeviceGetMemoryInfo_v2")) {
    use.memory_used = now.used;
    use.memory_total = now.total;
    return;
  }
  NvmlCalls::Memory before{};
  if (calls_.memory != nullptr &&
      good(calls_.memory(gpu_, &before), "nvmlDeviceGetMemoryInfo")) {
    use.memory_used = before.used;
    use.memory_total = before.total;
  }
}

bool GpuSensor::good(NvmlCalls::Return result, const char* call) {
  if (result == 0) return true;
  const char* why = trouble(result);
  if (why == nullptr || told_) return false;
  told_ = true;
  log(LogLevel::warning, "no numbers from the driver of the GPU at " +
                             pci_bus_id_ + ": " + call + ": " + why);
  return false;
}

std::unique_ptr<GpuSensor> gpu_sensor(const Device& device) {
  if (device.pci_bus_id().empty()) return nullptr;
  return std::make_unique<GpuSensor>(device.pci_bus_id(),
                                     nvml_of_this_machine());
}

std::optional<GpuUse> read_gpu_use(const Device& device) {
  std::unique_ptr<GpuSensor> sensor = gpu_sensor(device);
  if (sensor == nullptr) return std::nullopt;
  return sensor->read();
}

}  // namespace penstock
