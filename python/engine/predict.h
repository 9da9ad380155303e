#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

namespace nb = nanobind;

/// Predictions by a torch module of the user's.
void bind_predict(nb::module_& module);

}  // namespace penstock::python
