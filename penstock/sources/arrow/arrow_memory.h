#pragma once

#include <arrow/memory_pool.h>

namespace penstock::arrow_files {

/// Where Arrow's buffers come from: no more than the memory that was free when
/// the first file was opened, so that a damaged length is an error and not the
/// end of the program. Where that is little they are the C library's, which
/// gives large ones back to the system at once: the pools of Arrow keep tens of
/// MiB for each thread.
arrow::MemoryPool* memory();

}  // namespace penstock::arrow_files
