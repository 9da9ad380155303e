#include <cmath>
#include <cstring>
#include <numbers>

#include "penstock/base/clock.h"
#include "penstock/monitor/machine.h"

namespace penstock {
namespace {

/// From 0 to 1 and back once in half a minute.
double wave() {
  return 0.5 - 0.5 * std::cos(2 * std::numbers::pi *
                              seconds(wall_clock().now()) / 30);
}

constexpr unsigned long long kGiB = 1ull << 30;

NvmlCalls make() {
  using Calls = NvmlCalls;
  static int the_gpu;
  Calls calls;
  calls.init = [] { return 0; };
  calls.shutdown = [] { return 0; };
  calls.count = [](unsigned* count) { return *count = 1, 0; };
  auto find = [](Calls::Device* gpu) {
    *gpu = reinterpret_cast<Calls::Device>(&the_gpu);
    return 0;
  };
  static const auto found = find;
  calls.by_index = [](unsigned, Calls::Device* gpu) { return found(gpu); };
  calls.find = [](const char*, Calls::Device* gpu) { return found(gpu); };
  calls.pci = [](Calls::Device, Calls::Pci* pci) {
    std::strcpy(pci->bus_id, "synthetic");
    return 0;
  };
  calls.name = [](Calls::Device, char* name, unsigned size) {
    std::strncpy(name, "synthetic GPU", size);
    return 0;
  };
  calls.temperature = [](Calls::Device, int, unsigned* celsius) {
    *celsius = static_cast<unsigned>(40 + 30 * wave());
    return 0;
  };
  calls.power = [](Calls::Device, unsigned* milliwatts) {
    *milliwatts = static_cast<unsigned>(60'000 + 240'000 * wave());
    return 0;
  };
  calls.utilisation = [](Calls::Device, Calls::Utilisation* percent) {
    *percent = {static_cast<unsigned>(100 * wave()),
                static_cast<unsigned>(40 * wave())};
    return 0;
  };
  calls.memory = [](Calls::Device, Calls::Memory* now) {
    const auto used =
        static_cast<unsigned long long>((2 + 14 * wave()) * double(kGiB));
    *now = {24 * kGiB, 24 * kGiB - used, used};
    return 0;
  };
  calls.clock = [](Calls::Device, int, unsigned* mhz) {
    *mhz = static_cast<unsigned>(600 + 1200 * wave());
    return 0;
  };
  calls.clock_reasons = [](Calls::Device, unsigned long long* reasons) {
    *reasons = wave() < 0.1 ? 1 : 0;  // idle
    return 0;
  };
  return calls;
}

}  // namespace

const NvmlCalls& synthetic_nvml() {
  static const NvmlCalls calls = make();
  return calls;
}

}  // namespace penstock
