#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// From now on Parquet and Arrow files are read as penstock._rows.arrow_files
/// says: by the plugin with the libraries of pyarrow, or by pyarrow itself.
/// Nothing is imported before a file is opened. Adds map_file() to the module.
void let_pyarrow_read(nanobind::module_& module);

}  // namespace penstock::python
