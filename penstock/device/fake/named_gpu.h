#pragma once

#include <memory>
#include <string>
#include <utility>

#include "penstock/device/device.h"

namespace penstock {

/// A GPU that has nothing but its name, for tests of what is done before one is
/// used.
class NamedGpu : public Device {
 public:
  explicit NamedGpu(std::string name = "cuda:0", std::string pci_bus_id = {})
      : Device({.name = std::move(name),
                .memory_kind = MemoryKind::cuda,
                .pci_bus_id = std::move(pci_bus_id)}) {}

  Buffer allocate(std::size_t) override { return {}; }
  Buffer allocate_pinned(std::size_t) override { return {}; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  DeviceMemory memory() const override { return {}; }
};

/// A bus on which no machine has a GPU.
inline constexpr const char* kNoBus = "ffffffff:ff:1f.7";

}  // namespace penstock
