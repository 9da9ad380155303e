#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

namespace nb = nanobind;

/// Tables of other libraries, by Arrow's C stream interface: their columns, and
/// the rows that a job's fields make of them.
void bind_table(nb::module_& module);

}  // namespace penstock::python
