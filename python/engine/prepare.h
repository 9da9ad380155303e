#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Adds `prepare`, what `penstock.prepare()` calls.
void bind_prepare(nanobind::module_& module);

}  // namespace penstock::python
