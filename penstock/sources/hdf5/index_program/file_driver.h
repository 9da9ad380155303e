#pragma once

#include <hdf5.h>

#include <functional>
#include <optional>
#include <string>

#include "penstock/sources/hdf5/index_program/protocol.h"

namespace penstock::hdf5 {

/// Reads files for libhdf5, but for what they hold: of raw data it notes where
/// they lie and reads nothing. So the place of each chunk is found by its
/// coordinates, in the time of one look-up; H5Dget_chunk_info walks over all
/// chunks before the one that is asked for.
///
/// One thread's, as all of this program.
class FileDriver {
 public:
  /// `read` is called with each read.
  explicit FileDriver(std::function<void()> read);
  ~FileDriver();
  FileDriver(const FileDriver&) = delete;
  FileDriver& operator=(const FileDriver&) = delete;

  /// Properties for H5Fopen.
  hid_t access() const { return access_; }
  /// Where the chunk at these coordinates lies; none where it was never
  /// written. `buffer` has room for the chunk; nothing is written there.
  std::optional<ChunkPlace> place_of(hid_t dataset, const hsize_t* coordinates,
                                     void* buffer);

 private:
  hid_t driver_ = -1, access_ = -1;
};

}  // namespace penstock::hdf5
