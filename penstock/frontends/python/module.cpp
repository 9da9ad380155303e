// The module penstock._engine: faces of the rooms, given to Python. No logic.
#include <nanobind/nanobind.h>

#include "penstock/frontends/python/batch.h"
#include "penstock/frontends/python/batches.h"
#include "penstock/frontends/python/engine.h"
#include "penstock/frontends/python/lines.h"
#include "penstock/frontends/python/messages.h"
#include "penstock/frontends/python/ranks.h"
#include "penstock/frontends/python/rows.h"
#include "penstock/frontends/python/waiting.h"

NB_MODULE(_engine, module) {
  using namespace penstock::python;
  // A loader that still is a global variable at the end is no leak.
  nanobind::set_leak_warnings(false);
  module.doc() = "The engine of Penstock; `penstock` is its face.";
  module.attr("version") = PENSTOCK_VERSION;
  translate_errors();
  keep_messages();
  bind_field(module);
  bind_batch(module);
  bind_rows(module);
  bind_batches(module);
  bind_engine(module);
  bind_lines(module);
  bind_ranks(module);
  module.def("end_of_python", &end_of_python,
             "To be called when Python ends, before loaders are closed.");
  module.def("end_of_calls", &end_of_calls,
             "To be called when they are closed.");
  module.def("tell_messages", &tell_messages,
             "Hands over what the engine's threads wrote up to now.");
}
