#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/columns.h"

// The structures of Arrow's C data and C stream interfaces, as its page
// "The Arrow C data interface" defines them: what other libraries hand over
// without either side linking Arrow. The guards are those that it prescribes.

extern "C" {

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif
}

namespace penstock {

/// A column as it arrives, before it is requested.
struct ArrowColumn {
  ColumnInfo info;
  /// What it is read as: `utf8` for a dictionary of texts, float64 for times
  /// and decimals.
  ColumnType type;
  ColumnType element = ColumnType::float64;  ///< of a list
  Shape item = {};                           ///< of a fixed tensor
  std::string unsupported = {};  ///< its Arrow type, where it cannot be read
  std::string ambiguous = {};    ///< why its name does not identify it
  bool has_nulls = false;

  bool readable() const { return unsupported.empty() && ambiguous.empty(); }
};

}  // namespace penstock
