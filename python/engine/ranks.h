#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Comparing what the ranks have opened, by a function of Python that gathers
/// bytes (see compare_ranks()).
void bind_ranks(nanobind::module_& module);

}  // namespace penstock::python
