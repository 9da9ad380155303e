#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace penstock {

/// Work of libtorch that is recorded once and then queued again in one call: a
/// CUDA graph. Every replay reads and writes the memory that the recording
/// used.
///
/// Called from one thread; autograd may run part of `work` on its own threads.
class DeviceGraph {
 public:
  /// Returns the tensors that hold its results.
  using Work = std::function<std::vector<at::Tensor>()>;

  virtual ~DeviceGraph() = default;
  /// Calls `work` once, and records what it queues on the caller's current
  /// stream, on which nothing else is queued meanwhile. Nothing of it is
  /// executed: the tensors that it returns have their values after replay().
  /// What `work` throws ends the recording and is thrown on; the graph
  /// cannot be used then.
  virtual std::vector<at::Tensor> record(const Work& work) = 0;
  /// Queues all of it on the caller's current stream, which may be another one.
  virtual void replay() = 0;
  /// Memory that belongs to the graph until it is destroyed, which must not
  /// happen while the device replays it.
  virtual std::int64_t pool_bytes() const = 0;
};

using MakeGraph = std::unique_ptr<DeviceGraph> (*)();

/// What records graphs of a GPU: a plugin of its own, because it is linked to
/// libtorch_cuda. Its name has the minor version of torch, like the trainer's.
struct GraphPlugin {
  MakeGraph make;
};

/// The one symbol that is looked up in it.
inline constexpr const char* kGraphPluginEntry = "penstock_graph_part";

}  // namespace penstock
