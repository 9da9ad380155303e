#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "penstock/device/device.h"

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

/// The same of a device: bytes that tensors took at most since
/// begin_tensor_peak(); 0 where its allocator does not count.
std::int64_t tensor_peak(c10::Device device);
void begin_tensor_peak(c10::Device device);
/// Gives memory that libtorch's allocator of a GPU keeps, and no tensor uses,
/// back to the device; how many bytes. 0 on the host, which keeps none.
std::int64_t empty_allocator_cache(c10::Device device);

/// Limits what libtorch's allocator of a GPU may take to gpu_tensor_limit(). It
/// can be limited only before the process uses a GPU by libtorch; later,
/// another limit is a warning.
void limit_gpu_tensors(const Device& device, c10::Device torch);
/// The settings of that allocator, which the user may have `given`, with the
/// limit as a share of a GPU's memory.
std::string with_memory_share(const std::string& given, double share);

/// For tests: the `number`-th allocation from now on fails, from 1; 0: none.
void fail_host_allocation(std::int64_t number);
/// Allocations since the last fail_host_allocation().
std::int64_t host_allocations();

}  // namespace penstock
