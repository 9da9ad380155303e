#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// What the columns of a file or database hold, found out by reading rows, so
/// that they can be fields by themselves.
void bind_source_columns(nanobind::module_& module);

}  // namespace penstock::python
