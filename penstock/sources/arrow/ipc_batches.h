#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/files/data_files.h"
#include "penstock/sources/stop.h"

namespace penstock::arrow_files {

/// Decodes some fields of record batches, in any order. One thread's.
class IpcDecoder {
 public:
  virtual ~IpcDecoder() = default;
  /// Never null. Throws Error(source) that names `where`.
  virtual std::shared_ptr<arrow::RecordBatch> read(
      std::int64_t batch, const std::string& where) = 0;
};

/// The record batches of a file in one of Arrow's two IPC formats. A file's
/// buffers lie in its mapping, unless they are compressed. Thread-safe;
/// outlives its decoders.
class IpcBatches {
 public:
  virtual ~IpcBatches() = default;
  virtual const std::shared_ptr<arrow::Schema>& schema() const = 0;
  virtual std::int64_t count() const = 0;
  /// `fields` are those of the schema; at least one.
  virtual std::unique_ptr<IpcDecoder> decode(std::vector<int> fields) const = 0;
};

/// `file` must outlive what this returns. A file that begins and ends with the
/// mark of the file format is read by its footer, as the format demands: what
/// else lies in it, and whether an end mark stands before the footer, does not
/// matter. Any other file is a stream, which is walked once, message by
/// message, of which only the headers are touched.
std::unique_ptr<const IpcBatches> open_batches(const files::DataFile& file,
                                               StopFlag stop);

}  // namespace penstock::arrow_files
