#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Columns of objects of Python that are texts, as a data frame has them: which
/// texts there are, and the number of each row's, in one walk over the objects.
void bind_object_texts(nanobind::module_& module);

}  // namespace penstock::python
