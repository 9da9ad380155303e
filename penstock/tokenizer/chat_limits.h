#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::chat {

/// What goes wrong while a template is read or applied.
struct Failure {
  std::string why;
  bool limit = false;  ///< a limit was exceeded
};

// Templates come with models that somebody has put on the network. What one
// may use is bounded, far beyond what any that is meant well needs.
constexpr std::size_t kMostText = std::size_t{1} << 28;
constexpr std::size_t kMostItems = 2'000'000;
constexpr std::size_t kMostHeld = std::size_t{1} << 29;
constexpr std::size_t kMostWork = 200'000'000;
/// Of lists in lists, while a template is applied.
constexpr int kDeepestValue = 256;
/// Of a value of which a part is looked at: rows may hold deeper ones, and a
/// namespace may hold itself.
constexpr int kDeepestWalk = 1200;

[[noreturn]] void exceed(std::string what);

/// Counts what a template that is applied on this thread uses, for as long as
/// it lives. The memory is that of values: texts, lists and mappings.
class Meter {
 public:
  Meter();
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  /// Throw Failure beyond a limit.
  void hold(std::size_t bytes);
  void add_work(std::size_t units);
  void release(std::size_t bytes) noexcept { held_ -= bytes; }
  /// Null: no template is applied.
  static Meter* current() noexcept;

 private:
  Meter* const before_;
  std::size_t held_ = 0, work_ = 0;
};

/// The memory of one value. What it counts for is where it was made: a copy
/// counts nothing.
class Charge {
 public:
  Charge() noexcept : meter_(Meter::current()) {}
  explicit Charge(std::size_t bytes) : Charge() { add(bytes); }
  ~Charge() {
    if (meter_ != nullptr) meter_->release(bytes_);
  }
  Charge(const Charge&) noexcept {}
  Charge& operator=(const Charge&) noexcept { return *this; }
  void add(std::size_t bytes);

 private:
  Meter* meter_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A comparison, an item, or 16 bytes that are looked at or copied.
void work(std::size_t units);
void work_on(std::string_view text);

/// `to` += `more`, within the limit of a text.
void append(std::string& to, std::string_view more);

/// The place of `what` in `text` from a place on, or npos; in linear time.
std::size_t find_text(std::string_view text, std::string_view what,
                      std::size_t from = 0);

}  // namespace penstock::chat
