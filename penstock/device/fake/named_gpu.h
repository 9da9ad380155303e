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
  /// `pci_bus_id`: see Device::pci_bus_id().
  explicit NamedGpu(std::string name = "cuda:0", std::string pci_bus_id = {})
      : Device(MemoryKind::cuda, 0, std::move(pci_bus_id)),
        name_(std::move(name)) {}

  std::string name() const override { return name_; }
  Buffer allocate(std::size_t) override { return {}; }
  Buffer allocate_pinned(std::size_t) override { return {}; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  DeviceMemory memory() const override { return {}; }
  Clock& clock() const override { return wall_clock(); }

 private:
  const std::string name_;
};

/// A bus on which no machine has a GPU.
inline constexpr const char* kNoBus = "ffffffff:ff:1f.7";

}  // namespace penstock
