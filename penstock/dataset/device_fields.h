#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// Instead of a field: the whole stored rows of which a device keeps a part.
inline constexpr std::size_t kStoredRows = std::size_t{1} << 32;

/// A field whose samples a device finishes, and what of its stored rows is
/// copied there with each batch: nothing where the device keeps them.
struct DeviceField {
  std::size_t field = 0;
  std::size_t first_output = 0, outputs = 0;
  std::size_t row_bytes = 0;      ///< of the stored tensors of a row; 0: none
  std::size_t element_bytes = 0;  ///< of the stored run; 0: none
  std::int32_t longest_run = 0;   ///< in elements
  std::size_t scratch_bytes = 0;  ///< for each row
  StreamBytes stream_bytes;       ///< as QueueNeeds has it
  /// A run of so many elements or fewer has the room of the longest.
  std::int32_t roomy_run = 0;
};

/// What such fields find behind the outputs in FillItem::to, each: where its
/// stored tensors go, then where its runs go.
inline constexpr std::size_t kStagedPlaces = 2;

/// What is there of the stored runs when a batch is planned.
enum class Runs : std::uint8_t {
  unknown,   ///< not even their lengths
  measured,  ///< their lengths
  kept,      ///< all of them
};

/// Which fields a device with such memory finishes, for the train side and for
/// others.
std::array<std::vector<DeviceField>, 2> device_fields(
    const std::vector<Field>& fields, MemoryKind memory, Runs runs);

/// True where the host has nothing to do for a batch whose rows a device keeps:
/// a field is copied as stored, in rows of equal size, or finished there.
bool finished_on_device(
    const std::vector<Field>& fields,
    const std::array<std::vector<DeviceField>, 2>& on_device);

/// A line for each field that shall be finished on the device: that it is, and
/// what that takes; or that it is not, and why. `on_device` is what
/// device_fields() gave for `memory` and `runs`.
std::vector<std::string> finish_notes(
    const std::vector<Field>& fields,
    const std::array<std::vector<DeviceField>, 2>& on_device, MemoryKind memory,
    Runs runs);

}  // namespace penstock
