#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "penstock/sources/memory/arrow_data.h"

namespace penstock::arrow_files {

/// Fills `size` bytes with those that come next, or throws.
using ReadBytes = std::function<void(void* to, std::size_t size)>;

/// Reads one stream of Arrow's IPC format, up to and with its end-of-stream
/// marker, without Arrow's library: for streams that a process of ours writes,
/// without compression and in the byte order of this machine. Values are
/// borrowed from the bytes that were read, which the table owns. Throws
/// std::runtime_error for a stream that is damaged or has another form, and
/// what `read` throws.
std::shared_ptr<const ArrowTable> read_ipc_stream(const ReadBytes& read);

}  // namespace penstock::arrow_files
