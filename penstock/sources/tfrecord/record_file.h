#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::tfrecord {

/// Files of records: a length of 8 bytes, its masked CRC-32C, the bytes, their
/// masked CRC-32C. Each record is a tf.train.Example. Its features are columns,
/// whose types are those of the first 100 records: one number each, or lists of
/// them; bytes, or texts where all of them are UTF-8.
///
/// Where records begin is found when a file is opened, by their lengths alone;
/// a record whose bytes are not those of its CRC is a bad row.
std::vector<std::shared_ptr<const files::RowFile>> open_records(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop);

}  // namespace penstock::tfrecord
