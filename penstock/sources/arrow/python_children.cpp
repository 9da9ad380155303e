#include "penstock/sources/arrow/python_children.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/error.h"
#include "penstock/base/host_limits.h"

namespace penstock::arrow_files {

PythonChildren::PythonChildren()
    : most_(static_cast<std::size_t>(
          std::max(std::ceil(read_cpu_limit()), 1.0))) {}

std::shared_ptr<SharedChild> PythonChildren::take() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(children_, [](const auto& child) { return !child->usable(); });
  if (python_.empty()) return find();
  // The list is one holder of each. A holder that leaves at this moment may
  // still be counted: then one process more is started, within the limit.
  const auto least = std::ranges::min_element(
      children_, {}, [](const auto& child) { return child.use_count(); });
  const bool busy = least == children_.end() || least->use_count() > 1;
  if (!busy || children_.size() == most_) return *least;
  return children_.emplace_back(std::make_shared<SharedChild>(python_));
}

/// Starts the first Python that can be used. The caller has the mutex, so other
/// threads wait for the result.
std::shared_ptr<SharedChild> PythonChildren::find() {
  std::exception_ptr first;
  for (const std::string& python : pythons_to_try()) {
    try {
      auto child = std::make_shared<SharedChild>(python);
      child->ask([](PythonChild&) {});
      python_ = python;
      return children_.emplace_back(std::move(child));
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

}  // namespace penstock::arrow_files
