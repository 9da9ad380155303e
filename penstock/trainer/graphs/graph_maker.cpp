#include "penstock/trainer/graphs/graph_maker.h"

#include <atomic>

#include "penstock/trainer/cuda_library.h"

namespace penstock {
namespace {

std::atomic<MakeGraph> made_on_cpu{nullptr};

// Its libtorch_cuda is the one that torch_device() has loaded for this device.
const GraphPlugin& graph_plugin() {
  return load_plugin<GraphPlugin>(
      cuda_plugin("graphs", kGraphPluginEntry, "CUDA graphs",
                  "nvidia/cu13/include"),
      plugin_folders());
}

}  // namespace

GraphMaker graph_maker(c10::Device device) {
  if (device.is_cpu()) {
    if (const MakeGraph make = made_on_cpu.load()) return {.make = make};
    return {.why = "the cpu does not support it"};
  }
  try {
    return {.make = graph_plugin().make};
  } catch (const Error& error) {
    return {.why = error.parts().why};
  }
}

void make_graphs_on_cpu(MakeGraph make) { made_on_cpu = make; }

}  // namespace penstock
