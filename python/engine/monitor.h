#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// What machines and threads do, as numbers.
void bind_monitor(nanobind::module_& module);

}  // namespace penstock::python
