#include "penstock/session/memory_account.h"

#include <algorithm>

#include "penstock/base/tensor_limit.h"

namespace penstock {
namespace {

/// The owners of a sample, as the report names them.
struct Owner {
  const char* name;
  std::int64_t (*bytes)(const MemoryByOwner& model, const DataMemory& data);
};
constexpr Owner kOwners[] = {
    {"parameters", [](const MemoryByOwner& model,
                      const DataMemory&) { return model.parameters; }},
    {"gradients", [](const MemoryByOwner& model,
                     const DataMemory&) { return model.gradients; }},
    {"optimizer", [](const MemoryByOwner& model,
                     const DataMemory&) { return model.optimizer; }},
    {"activations", [](const MemoryByOwner& model,
                       const DataMemory&) { return model.activations; }},
    {"cache",
     [](const MemoryByOwner&, const DataMemory& data) { return data.cache; }},
    {"look_ahead", [](const MemoryByOwner&, const DataMemory& data) {
       return data.look_ahead;
     }}};

void raise(std::int64_t& most, std::int64_t bytes) {
  most = std::max(most, bytes);
}

}  // namespace

DataMemoryNow data_memory(const Device& device) {
  DataMemoryNow now;
  if (device.memory_kind() == MemoryKind::cpu) {
    now.bytes.look_ahead = limited_bytes().batches;
    now.peak.look_ahead = limited_bytes().most_batches;
    return now;
  }
  for (const HeldMemory& held : held_memory()) {
    if (held.place != HeldIn::device) continue;
    if (held.owner == HeldFor::rows) {
      now.bytes.cache = static_cast<std::int64_t>(held.bytes);
      now.peak.cache = static_cast<std::int64_t>(held.peak);
    }
    if (held.owner == HeldFor::batches) {
      now.bytes.look_ahead = static_cast<std::int64_t>(held.bytes);
      now.peak.look_ahead = static_cast<std::int64_t>(held.peak);
    }
  }
  return now;
}

void MemoryAccount::Sample::add(const Sample& later) {
  seconds = later.seconds;
  steps += later.steps;
  raise(model.parameters, later.model.parameters);
  raise(model.gradients, later.model.gradients);
  raise(model.optimizer, later.model.optimizer);
  raise(model.activations, later.model.activations);
  raise(data.cache, later.data.cache);
  raise(data.look_ahead, later.data.look_ahead);
}

void MemoryAccount::add(double seconds, const MemoryByOwner& model,
                        const DataMemory& data) {
  const Sample sample{seconds, 1, model, data};
  if (!samples_.empty() && samples_.back().steps < each_)
    return samples_.back().add(sample);
  if (samples_.size() == kMost) merge();
  samples_.push_back(sample);
}

void MemoryAccount::merge() {
  for (std::size_t i = 0; i < samples_.size() / 2; ++i) {
    Sample both = samples_[2 * i];
    both.add(samples_[2 * i + 1]);
    samples_[i] = both;
  }
  samples_.resize(samples_.size() / 2);
  each_ *= 2;
}

Json MemoryAccount::json() const {
  if (samples_.empty()) return {};
  Json json;
  json["seconds"] = Json(Json::Array{});
  for (const Sample& sample : samples_)
    json["seconds"].push_back(sample.seconds);
  for (const Owner& owner : kOwners) {
    json[owner.name] = Json(Json::Array{});
    for (const Sample& sample : samples_)
      json[owner.name].push_back(owner.bytes(sample.model, sample.data));
  }
  return json;
}

}  // namespace penstock
