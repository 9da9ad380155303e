#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Text as ids of a tokenizer.json, and back.
void bind_tokenizer(nanobind::module_& module);

}  // namespace penstock::python
