#include "penstock/exec/ranges.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "penstock/exec/stage.h"

namespace penstock {

// The caller's thread takes the first range. All ranges are finished before an
// error is thrown, and it is that of the first range that failed, whichever
// failed first: the result does not depend on timing.
void in_ranges(
    int workers, std::int64_t count,
    const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  if (count <= 0) return;
  std::int64_t ranges = std::clamp<std::int64_t>(workers, 1, count);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranges));
  auto run = [&](std::int64_t range) {
    try {
      work(count * range / ranges, count * (range + 1) / ranges);
    } catch (...) {
      errors[static_cast<std::size_t>(range)] = std::current_exception();
    }
  };
  {
    Stage others({.name = "ranges",
                  .workers = static_cast<int>(ranges) - 1,
                  .body = [&](int worker) { run(worker + 1); }});
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace penstock
