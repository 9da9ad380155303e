#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "penstock/base/json.h"
#include "penstock/sources/hdf5/index_program/file_driver.h"
#include "penstock/sources/hdf5/index_program/protocol.h"

namespace penstock::hdf5 {

/// Why a file cannot be indexed.
struct IndexFailure {
  std::string code, why, next;
};

/// Sends a frame.
using SendFrame = std::function<void(Frame kind, std::string_view bytes)>;

/// Sends the index of a file, and the chunks of its data sets. Throws
/// IndexFailure. `progress` is called between any two steps.
///
/// The index is {"matlab", "base": bytes before the first that addresses count,
/// "data_sets": [...], "groups": [{"path",
/// "attributes"}], "skipped": [{"path", "why"}]}: see data_set.h.
void send_index(const std::string& path, FileDriver& driver,
                const SendFrame& send, const std::function<void()>& progress);

}  // namespace penstock::hdf5
