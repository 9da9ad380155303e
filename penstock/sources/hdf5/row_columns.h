#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/files/file_settings.h"
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

/// A data set of which a job reads windows.
struct WindowsOf {
  std::string path;
  files::Windows windows;
  std::string setting;  ///< that asks, for errors
};

/// What a job says about how rows lie in files.
struct RowSettings {
  std::string group = "/";
  enum class Samples : std::uint8_t {
    rows,
    groups,
    sets
  } samples = Samples::rows;
  bool last = false, first = false;  ///< the axis of rows; neither: by the file
  std::vector<std::pair<std::string, std::string>> ragged = {};
  std::vector<WindowsOf> windows = {};
};
RowSettings row_settings_of(const FileSettings& settings);

/// Finds the columns and rows of a file. Reads offsets, nothing else. Throws
/// Error(source), hdf5.no_rows, hdf5.offsets.
RowColumns columns_of(const std::shared_ptr<const IndexedFile>& file,
                      const RowSettings& settings, RawReader& reader);

/// The same columns where those with these numbers are read and have another
/// number of rows than what is read by default; nullopt: they have not. Throws
/// Error(source), hdf5.lengths, where they differ among each other; `place` is
/// for the message.
std::optional<RowColumns> of_length(const RowColumns& all,
                                    const std::vector<std::size_t>& read,
                                    const std::string& place);
/// Of columns that cannot be read beside those that are read by default.
std::vector<LeftOutColumn> of_other_lengths(const RowColumns& columns);

/// Adds columns of another file, whose rows from `first` on stand beside those
/// of this one.
void add_columns(const RowColumns& other, std::int64_t first, RowColumns& to);

}  // namespace penstock::hdf5
