#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"
#include "penstock/sources/files/windows.h"
#include "penstock/sources/hdf5/values.h"

namespace penstock::hdf5 {

/// How a column of a file of HDF5 comes about.
struct RowColumn {
  files::FileColumn column;
  enum class From : std::uint8_t {
    set,        ///< rows of a data set, or windows of it
    cut,        ///< rows of a data set, as lists that offsets cut
    constants,  ///< the same value in each row
    samples,    ///< a data set for each row
    values,     ///< a value for each row, already known
  } from = From::set;
  ValuePlan plan = {};
  std::shared_ptr<const IndexedFile> file = nullptr;
  RowView view = {};
  files::Windows windows = {};  ///< of the view's rows
  std::int64_t rows = -1;       ///< -1: as many as others, a constant
  std::int64_t first = 0;       ///< the row of all that is row 0 here
  std::shared_ptr<const std::vector<std::int64_t>> offsets = nullptr;  ///< cut
  std::vector<const DataSet*> sets = {};  ///< samples; null: a row has none
  std::vector<Json> values = {};          ///< of each row, or one of all
};

/// The columns of one file, and how many rows are read by default: as many as
/// its largest data set has. Columns of other lengths can be read without it.
struct RowColumns {
  std::vector<RowColumn> columns;
  std::vector<LeftOutColumn> refused;  ///< data sets that are not columns
  std::int64_t rows = 0;
  /// The data set of most bytes of those with so many rows, which decides about
  /// chunks of rows; none in samples. Where windows are read, it is one of
  /// those.
  RowView leading = {};
  files::Windows windows = {};               ///< of the leading one
  std::vector<std::int64_t> row_bytes = {};  ///< of samples, by row
};

}  // namespace penstock::hdf5
