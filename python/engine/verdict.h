#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// The advisor's verdict on a loop whose batches Python fetches.
void bind_verdict(nanobind::module_& module);

}  // namespace penstock::python
