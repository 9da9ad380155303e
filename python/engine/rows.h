#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/sources/sources.h"
#include "python/engine/function.h"

namespace penstock::python {

namespace nb = nanobind;

/// A tensor of rows that a function makes: its name, the name of its type, the
/// shape of one row.
using MadeTensor =
    std::tuple<std::string, std::string, std::vector<std::int64_t>>;

/// Rows that Python makes, until a loader is opened that takes them.
struct OwnRows {
  RowsMaker maker;                     ///< may be empty: none
  std::shared_ptr<Function> function;  ///< that the maker calls; null: arrays
  /// The columns of a source, whose rows the job's fields take.
  std::optional<Schema> schema = {};

  int visit(visitproc visit, void* arg) const;
  void clear();
};
/// An array that Python lends for writing, kept alive with it. Throws
/// Error(request), code arrays.array, for anything else.
NamedArray writable_array(const std::string& name, nb::handle object);

/// Rows that are arrays in host memory, by anything that knows DLPack or the
/// buffer protocol; names in their order. They are used where they lie.
/// `drawn_by` has the weight of each row, or the value to balance, or is None.
OwnRows rows_of_arrays(const std::vector<std::string>& names,
                       const std::vector<nb::object>& arrays,
                       nb::object drawn_by);

/// Rows 0 .. `count` - 1 that `call` makes (see Function).
OwnRows rows_of_function(std::int64_t count, nb::object call,
                         const std::vector<MadeTensor>& tensors,
                         std::string fingerprint);

/// A function of Python with what must be known of it beforehand.
RowFunction row_function(std::shared_ptr<Function> function,
                         const std::vector<MadeTensor>& tensors,
                         std::string fingerprint, bool whole_batches);

void bind_rows(nb::module_& module);

}  // namespace penstock::python
