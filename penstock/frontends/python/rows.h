#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/run/run.h"

namespace penstock::python {

namespace nb = nanobind;

/// An object of Python that our threads hold: whoever lets it go last takes
/// Python's lock for that.
std::shared_ptr<PyObject> shared(nb::handle object);

/// A tensor of rows that a function makes: its name, the name of its type, the
/// shape of one row.
using MadeTensor =
    std::tuple<std::string, std::string, std::vector<std::int64_t>>;

/// Rows that are arrays in host memory, by anything that knows DLPack or the
/// buffer protocol; names in their order. They are used where they lie.
RowsMaker rows_of_arrays(const std::vector<std::string>& names,
                         const std::vector<nb::object>& arrays);

/// Rows 0 .. `count` - 1 that `call` makes (see function_of).
RowsMaker rows_of_function(std::int64_t count, RowFunction function);

/// A callable as a function that makes rows:
/// `call(ids, inputs, outputs, epoch, step)`, where `ids` is an array [n] of
/// int64, and the other two are lists of arrays [n, ...], to be read and to be
/// written. `ids` and `outputs` are gone when the call returns. It is called on
/// the loader's threads, with Python's lock. What it raises is raised by the
/// loader in the batch's turn.
RowFunction function_of(nb::object call, const std::vector<MadeTensor>& tensors,
                        std::string fingerprint, bool whole_batches);

/// The exception of Python that an error came of; null for all other errors.
nb::object raised_in_python(const Error& error);
/// True for one that is no failure but asks for an end: KeyboardInterrupt...
bool asks_for_an_end(nb::handle exception);

void bind_rows(nb::module_& module);

}  // namespace penstock::python
