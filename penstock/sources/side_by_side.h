#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace penstock {

/// Calls `work` with each number below `count`, in any order, on several
/// threads, of which this is one. Throws what one of them threw.
template <class Work>
void side_by_side(std::size_t count, Work work) {
  const std::size_t threads =
      std::min({std::max<std::size_t>(count, 1), std::size_t{16},
                std::max<std::size_t>(std::thread::hardware_concurrency(), 1)});
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> errors(threads);
  auto take = [&](std::size_t thread) {
    try {
      for (std::size_t at = next++; at < count; at = next++) work(at);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t thread = 1; thread < threads; ++thread)
        others.emplace_back(take, thread);
    } catch (const std::system_error&) {  // those that there are do it all
    }
    take(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace penstock
