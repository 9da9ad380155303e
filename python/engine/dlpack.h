#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "python/engine/batch.h"

namespace penstock::python {

/// What a library asks of `__dlpack__`, as the array API standard says it.
struct DlpackRequest {
  /// 1 or more: the versioned kind, which can say that it is read-only.
  std::int64_t major_version = 0;
  bool copy = false;  ///< memory of its own
  /// Where the tensor shall be; missing: where it is.
  std::optional<std::pair<int, int>> device;
};

/// A capsule with `field`'s tensor, without a copy unless one is asked for.
/// The batch's memory is held until the consumer's deleter is called, which
/// needs no lock of Python's. Raises BufferError for what cannot be done.
nb::object dlpack_capsule(const Field& field, const DlpackRequest& request);

/// The device as DLPack counts: (1, 0) is the host's memory.
std::pair<int, int> dlpack_device(const Field& field);

}  // namespace penstock::python
