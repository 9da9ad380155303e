#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock::python {

namespace nb = nanobind;

/// Name, declared type, kind, dtype (of a list and a tensor that of its
/// numbers), whether there may be nulls, a tensor's shape, and how many classes
/// are declared, whether it is (part of) the declared primary key, and
/// ColumnInfo::index.
using TableColumn =
    std::tuple<std::string, std::string, std::string, std::string, bool,
               std::vector<std::int64_t>, std::size_t, bool, std::string>;

/// The record batches of a capsule that `__arrow_c_stream__()` gave, kept until
/// nobody uses them; `classes` as ArrowTable::read() has them. With Python's
/// lock.
std::shared_ptr<const ArrowTable> table_of(
    const nb::capsule& stream, const ArrowTable::Classes& classes = {});

/// Tables of other libraries, by Arrow's C stream interface: their columns, and
/// the rows that a job's fields make of them.
void bind_table(nb::module_& module);

}  // namespace penstock::python
