#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace penstock {

/// Answers, by what was asked, that may be 0.1 s old: for what a start asks a
/// dozen times and the kernel takes its time for. Thread-safe, in a forked
/// process, too. To be kept for good: threads may ask while the process ends.
template <class Answer>
class Recent {
 public:
  /// What `find` gives, or gave to the same question a moment ago.
  template <class Find>
  Answer get(std::string_view question, Find&& find) {
    // A fork may have begun while it was held.
    const std::unique_lock held(lock_, std::try_to_lock);
    if (!held) return find();
    const Clock::time_point now = Clock::now();
    const auto known = known_.find(question);
    if (known != known_.end() && now - known->second.found < kKept)
      return known->second.answer;
    Answer answer = find();
    known_.insert_or_assign(std::string(question), Known{answer, now});
    return answer;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kKept = std::chrono::milliseconds(100);
  struct Known {
    Answer answer;
    Clock::time_point found;
  };

  std::mutex lock_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace penstock
