#include "penstock/cli/interpreter_lock.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/base/printable.h"
#include "penstock/base/shown.h"
#include "penstock/cli/child_program.h"

namespace penstock {
namespace {

constexpr double kBound = 0.8;  // of the looks

}  // namespace

// A sampling profiler: the share of looks at which some thread holds the lock
// estimates the share of time. --nonblocking does not stop the process, at the
// price of looks that fail and are not counted.
void InterpreterLock::look() {
  if (!why_not_.empty()) return;  // it will not be there the next time either
  const ProgramAnswer answer =
      answer_of_program({"py-spy", "dump", "--json", "--nonblocking", "--pid",
                         std::to_string(process_)});
  if (answer.failed != 0)
    why_not_ = answer.failed == ENOENT ? "py-spy is not installed"
                                       : std::strerror(answer.failed);
  else if (!count(answer.said) && looks_ == 0)
    why_not_ = "py-spy reports: " + last_line(answer.said);
}

bool InterpreterLock::count(const std::string& dump) try {
  const Json threads = Json::parse(dump, "py-spy");
  if (!threads.is_array()) return false;
  bool held = false;
  for (const Json& thread : threads.array()) {
    const Json* owns = thread.is_object() ? thread.find("owns_gil") : nullptr;
    if (owns == nullptr || *owns != Json(true)) continue;
    const Json* name = thread.find("thread_name");
    ++holders_[name != nullptr && name->is_string() ? name->string() : "?"];
    held = true;
  }
  ++looks_;
  held_ += held;
  return true;
} catch (const Error&) {
  return false;
}

Json InterpreterLock::json() const {
  const auto looks = static_cast<double>(looks_);
  Json json;
  json["looks"] = looks_;
  json["held"] = looks_ > 0 ? Json(static_cast<double>(held_) / looks) : Json();
  json["holders"] = Json::Array{};
  for (const auto& [name, count] : holders_) {
    Json entry;
    entry["thread"] = name;
    entry["share"] = static_cast<double>(count) / looks;
    json["holders"].push_back(std::move(entry));
  }
  json["why_not"] = why_not_.empty() ? Json() : Json(why_not_);
  return json;
}

bool InterpreterLock::limits() const {
  return looks_ > 0 &&
         static_cast<double>(held_) >= kBound * static_cast<double>(looks_);
}

std::string InterpreterLock::text() const {
  if (looks_ == 0)
    return "Python's global interpreter lock (GIL): n/a" +
           (why_not_.empty() ? "" : ", " + printable(why_not_)) + "\n";
  const auto looks = static_cast<double>(looks_);
  const double held = static_cast<double>(held_) / looks;
  std::string text = "Python's global interpreter lock (GIL) was held in " +
                     shown_percent(held, 0) + " of " + std::to_string(looks_) +
                     " samples";
  const auto most = std::ranges::max_element(
      holders_, {}, [](const auto& holder) { return holder.second; });
  if (most != holders_.end())
    text += " (most by " + printable(most->first) + ", " +
            shown_percent(static_cast<double>(most->second) / looks, 0) + ")";
  return text + (limits() ? ": more Python threads would not help\n"
                          : ": it is not the bottleneck\n");
}

}  // namespace penstock
