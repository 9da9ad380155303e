#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// The texts of columns of a source, in the order of its rows.
void bind_source_texts(nanobind::module_& module);

}  // namespace penstock::python
