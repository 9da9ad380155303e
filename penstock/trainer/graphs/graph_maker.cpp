#include "penstock/trainer/graphs/graph_maker.h"

#include <torch/headeronly/version.h>

#include <atomic>

#include "penstock/base/plugin.h"

namespace penstock {
namespace {

std::atomic<MakeGraph> made_on_cpu{nullptr};

// Its libtorch_cuda is the one that torch_device() has loaded for this device.
const GraphPlugin& graph_plugin() {
  static const std::string release = std::to_string(TORCH_VERSION_MAJOR) + "." +
                                     std::to_string(TORCH_VERSION_MINOR);
  return load_plugin<GraphPlugin>(
      {.library = "libpenstock_graphs_" + release + ".so",
       .entry = kGraphPluginEntry,
       .shown = "the plugin for CUDA graphs with libtorch " + release,
       .kind = ErrorKind::device,
       .code = "trainer",
       .install = "build Penstock with a PyTorch that has its CUDA packages "
                  "(nvidia/cu13/include next to torch)"},
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
