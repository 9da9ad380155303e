#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/device/device.h"

namespace penstock {

/// What a GPU's driver reports of it, for all its users. What it does not
/// report is missing, and never 0.
struct GpuUse {
  std::optional<double> temperature_c;
  std::optional<double> power_w;  ///< over about the last second
  /// 0 to 1: the share of the last sample period (a sixth of a second to one)
  /// in which any kernel ran. A share of time, not of the GPU's capacity: one
  /// small kernel after the other reads 1. It stands beside AU, not for it.
  std::optional<double> utilisation;
  std::optional<std::size_t> memory_used;
  std::optional<std::size_t> memory_total;
  std::optional<double> sm_clock_mhz;
  /// Why its clocks are not higher: "idle", "power limit", "heat", ...; empty
  /// where nothing holds them down.
  std::optional<std::vector<std::string>> clock_reasons;
  std::optional<double> pcie_sent, pcie_received;  ///< bytes/s, over 20 ms

  /// For people: "GPU 97 % 64 C 512 W", `n/a` in the place of what is missing.
  /// The memory is not in it.
  std::string text() const;
  /// For reports: every number by its name, null where it is missing.
  Json json() const;
};

/// The functions of NVIDIA's management library (libnvidia-ml.so.1) that we
/// call, by declarations of our own, so that nothing of it is needed to build.
/// Null: the library has no such function, which is no error.
struct NvmlCalls {
  using Device = struct NvmlDevice*;
  using Return = int;  // 0 is success

  struct Utilisation {  // percent
    unsigned gpu, memory;
  };
  struct Memory {  // before version 2 "used" counted what the driver keeps
    unsigned long long total, free, used;
  };
  struct Memory2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
  };
  struct Temperature1 {
    unsigned version;
    int sensor;  // 0: the GPU itself
    int celsius;
  };

  struct Pci {
    char bus_id_before_3[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
  };

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*find)(const char* pci_bus_id, Device*) = nullptr;
  Return (*temperature_1)(Device, Temperature1*) = nullptr;
  Return (*temperature)(Device, int sensor, unsigned* celsius) = nullptr;
  Return (*power)(Device, unsigned* milliwatts) = nullptr;
  Return (*utilisation)(Device, Utilisation*) = nullptr;
  Return (*memory_2)(Device, Memory2*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*by_index)(unsigned, Device*) = nullptr;
  Return (*pci)(Device, Pci*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*clock)(Device, int of, unsigned* mhz) = nullptr;  // 1: SM
  Return (*clock_reasons)(Device, unsigned long long*) = nullptr;
  Return (*pcie)(Device, int sent_0_received_1, unsigned* kb_s) = nullptr;
};

/// The library of this machine, opened the first time and kept; all null if
/// none exists.
const NvmlCalls& nvml_of_this_machine();

/// A GPU as its driver sees it. A call that fails gives a missing number, never
/// an error; a GPU that is lost, or that we may not use, is reported once in
/// the log. One thread.
class GpuSensor {
 public:
  /// The GPU at a place on the bus, because the library counts GPUs in another
  /// order than CUDA.
  GpuSensor(const std::string& pci_bus_id, const NvmlCalls& calls);
  ~GpuSensor();
  GpuSensor(const GpuSensor&) = delete;
  GpuSensor& operator=(const GpuSensor&) = delete;

  GpuUse read();
  /// The model's name; empty where it is not known.
  std::string name();
  /// What passes between the host and the GPU; it takes 40 ms to measure.
  void read_pcie(GpuUse& use);

 private:
  bool good(NvmlCalls::Return result, const char* call);
  std::optional<double> temperature();
  void read_memory(GpuUse& use);
  void read_clocks(GpuUse& use);

  const NvmlCalls& calls_;
  const std::string pci_bus_id_;
  bool started_ = false;
  bool told_ = false;
  NvmlCalls::Device gpu_ = nullptr;
};

/// The sensor of a device that is a GPU. Null for any other; then the
/// library is not opened.
std::unique_ptr<GpuSensor> gpu_sensor(const Device& device);

/// What gpu_sensor() reads now; missing where the device is no GPU.
std::optional<GpuUse> read_gpu_use(const Device& device);

}  // namespace penstock
