#pragma once

#include <memory>
#include <string>

#include "penstock/sources/source.h"

namespace penstock {

/// A reader of `source` whose blocks are checked before anything uses them: as
/// many rows as were requested, columns of the types that the source promised,
/// buffers that hold what the offsets say, rows of fewer than 2^31 elements,
/// and as many as lengths() said. Any difference is an Error(source) that names
/// the column and the row. Data sets read through here.
///
/// What the reader holds (ReaderMemory) is charged to "records" from its first
/// use on.
///
/// Where the source has a global lock, one of these readers works at a time in
/// the whole process; a sink runs outside the lock. Must not outlive `source`,
/// like any other reader.
std::unique_ptr<Reader> open_checked_reader(Source& source);

/// What is wrong with the layout of a column of `rows` rows; empty: nothing.
struct ColumnFault {
  std::string code;  ///< of the error: "source.bad_offsets"
  std::string why;
  std::int64_t row = -1;  ///< -1: all of them
};
ColumnFault fault_of(const Column& column, std::int64_t rows);

}  // namespace penstock
