#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

namespace nb = nanobind;

/// Runs of a job whose model is a torch module of the user's: the loop, the
/// checkpoints and the report are the engine's, the steps are Python's.
void bind_train(nb::module_& module);

}  // namespace penstock::python
