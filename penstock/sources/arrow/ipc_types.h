#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sources/arrow/flatbuffer.h"

namespace penstock::arrow_files {

/// A field of a schema as Arrow's C data interface describes it.
struct IpcField {
  std::string name;
  std::string format;  ///< of a dictionary that of its indices
  std::int64_t flags = 0;
  std::vector<IpcField> children = {};
  std::int64_t dictionary = -1;       ///< its number; -1: it has none
  std::vector<IpcField> values = {};  ///< of a dictionary: one field
};

/// The fields of the table Schema at `schema` in a flatbuffer of Arrow's IPC
/// format (Schema.fbs). Throws std::runtime_error for a type that is not known.
std::vector<IpcField> ipc_fields(const Flatbuffer& of, std::size_t schema);

/// The schema's pairs of keys and values as the C data interface has them.
std::string ipc_metadata(const Flatbuffer& of, std::size_t schema);

}  // namespace penstock::arrow_files
