#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/files/windows.h"
#include "penstock/sources/hdf5/row_column.h"

namespace penstock::hdf5 {

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
