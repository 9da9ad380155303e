#pragma once

#include <cstdint>
#include <functional>

namespace penstock {

/// Calls `work` for ranges that make up [0, count), one on each of `workers`
/// threads, the caller's own among them; with 0 or 1 all on the caller's. If
/// ranges throw, the exception of the lowest one is rethrown when all have
/// ended, so that the error does not depend on the threads.
void in_ranges(
    int workers, std::int64_t count,
    const std::function<void(std::int64_t begin, std::int64_t end)>& work);

}  // namespace penstock
