#include "penstock/dataset/device_fields.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "penstock/cache/cache.h"

namespace penstock {
namespace {

/// Of one row of the field alone, a multiple of its widest element: so every
/// row of an array of them is aligned. The stored rows of a data set are long
/// enough for that, behind the last field too.
std::size_t row_bytes(const StoredForm& stored) {
  RowLayout alone;
  alone.append(stored.tensors);
  std::size_t widest = 1;
  for (const TensorSpec& tensor : alone.tensors)
    widest = std::max(widest, size_of(tensor.dtype));
  return (alone.row_bytes + widest - 1) / widest * widest;
}

bool equal_outputs(const FieldKind& kind) {
  return std::ranges::all_of(kind.facts().outputs, [](const Output& output) {
    return output.lengths == Lengths::equal;
  });
}

}  // namespace

std::array<std::vector<DeviceField>, 2> device_fields(
    const std::vector<Field>& fields, MemoryKind memory, Runs runs) {
  std::array<std::vector<DeviceField>, 2> found;
  if (memory == MemoryKind::cpu) return found;
  std::size_t output = 0;
  const auto stored_runs = std::ranges::count_if(fields, [](const Field& of) {
    return of.kind->facts().stored.element_bytes > 0;
  });
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldKind& kind = *fields[f].kind;
    const StoredForm& stored = kind.facts().stored;
    DeviceField field{
        .field = f,
        .first_output = output,
        .outputs = kind.facts().outputs.size(),
        .row_bytes = row_bytes(stored),
        .element_bytes = stored.read_by_host ? 0 : stored.element_bytes,
        .roomy_run = static_cast<std::int32_t>(stored.most_rejected)};
    // Another field may reject a row whose own run is sound.
    if (field.roomy_run > 0 && stored_runs > 1)
      field.roomy_run = std::numeric_limits<std::int32_t>::max();
    output += field.outputs;
    const Runs needed = stored.read_by_host        ? Runs::kept
                        : stored.element_bytes > 0 ? Runs::measured
                                                   : Runs::unknown;
    if (!equal_outputs(kind) || runs < needed) continue;
    for (bool train : {true, false}) {
      std::unique_ptr<FieldFinisher> finisher = kind.finisher(train);
      if (finisher == nullptr) continue;
      const std::optional<QueueNeeds> needs = finisher->queue_needs(memory);
      if (!needs) continue;
      field.scratch_bytes = needs->scratch_bytes;
      field.stream_bytes = needs->stream_bytes;
      found[train ? 0 : 1].push_back(field);
    }
  }
  return found;
}

bool finished_on_device(
    const std::vector<Field>& fields,
    const std::array<std::vector<DeviceField>, 2>& on_device) {
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldKind& kind = *fields[f].kind;
    const StoredForm& stored = kind.facts().stored;
    if (stored.read_by_host) return false;
    for (bool train : {true, false}) {
      bool copied =
          kind.finisher(train) == nullptr && stored.element_bytes == 0;
      if (!copied &&
          !std::ranges::count(on_device[train ? 0 : 1], f, &DeviceField::field))
        return false;
    }
  }
  return true;
}

namespace {

const char* why_on_host(MemoryKind memory, Runs runs) {
  if (memory == MemoryKind::cpu || runs == Runs::kept)
    return "host memory is the device's memory, or a batch operation runs on "
           "the device";
  if (runs == Runs::measured)
    return "the files are not kept; \"loader.cache\": \"ram\" keeps them";
  return "the size of rows that are read by position is not known beforehand; "
         "\"loader.cache\": \"ram\" keeps them";
}

}  // namespace

std::vector<std::string> finish_notes(
    const std::vector<Field>& fields,
    const std::array<std::vector<DeviceField>, 2>& on_device, MemoryKind memory,
    Runs runs) {
  std::vector<std::string> notes;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (!fields[f].kind->facts().wants_device) continue;
    std::string note = "field '" + fields[f].name + "' is finished on the ";
    const auto found = std::ranges::find(on_device[0], f, &DeviceField::field);
    if (found == on_device[0].end()) {
      note += std::string("host: ") + why_on_host(memory, runs);
    } else {
      note += "device";
      const StreamBytes& held = found->stream_bytes;
      if (held.device > 0)
        note += ": each stream uses " + shown_bytes(held.device) +
                " of device memory for it, and " + shown_bytes(held.pinned) +
                " pinned";
      if (held.of_all_streams > 0)
        note += "; its decoders use " + shown_bytes(held.of_all_streams);
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace penstock
