#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// The progress line, and the shares on it, of a loop over a loader that is
/// none of the engine's: it tells how long it waited, and how long it worked.
void bind_lines(nanobind::module_& module);

}  // namespace penstock::python
