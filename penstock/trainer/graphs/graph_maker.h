#pragma once

#include <c10/core/Device.h>

#include <string>

#include "penstock/trainer/graphs/device_graph.h"

namespace penstock {

/// How graphs are made on a device, or why it has no graphs.
struct GraphMaker {
  MakeGraph make = nullptr;
  std::string why;  ///< empty where `make` is not
};

/// Of a GPU: by the plugin for the torch that is loaded.
GraphMaker graph_maker(c10::Device device);

/// For tests: from here on the cpu has graphs, too. Null: as before.
void make_graphs_on_cpu(MakeGraph make);

}  // namespace penstock
