#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// The progress line, and the shares on it, of a loop over a loader that is
/// not the engine's, by how long it waited and how long it worked.
void bind_progress_line(nanobind::module_& module);

}  // namespace penstock::python
