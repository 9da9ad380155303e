#pragma once

#include <cstdint>

namespace penstock {

/// What libtorch's tensors take on the host, counted by an allocator in front
/// of libtorch's own. From the first call on, in the whole process; tensors
/// that were there before are not counted. Any thread.
///
/// Beyond tensor_limit() it throws c10::OutOfMemoryError, as a GPU would.
void count_host_tensors();

/// Bytes that are held now, and that were held at most since begin_peak().
std::int64_t host_tensor_bytes();
std::int64_t host_tensor_peak();
void begin_host_tensor_peak();

/// For tests: the `number`-th allocation from now on fails, from 1; 0: none.
void fail_host_allocation(std::int64_t number);
/// Allocations since the last fail_host_allocation().
std::int64_t host_allocations();

}  // namespace penstock
