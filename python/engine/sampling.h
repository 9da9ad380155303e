#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// The order of samples and the numbers drawn by a key, for loaders whose items
/// Python fetches: the same as in the engine's own loaders.
void bind_sampling(nanobind::module_& module);

}  // namespace penstock::python
