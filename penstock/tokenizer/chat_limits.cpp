#include "penstock/tokenizer/chat_limits.h"

#include <cstring>
#include <utility>

namespace penstock::chat {
namespace {

thread_local Meter* metered = nullptr;

}  // namespace

void exceed(std::string what) {
  throw Failure{.why = std::move(what), .limit = true};
}

Meter::Meter() : before_(std::exchange(metered, this)) {}
Meter::~Meter() { metered = before_; }

Meter* Meter::current() noexcept { return metered; }

// What would exceed the limit is not counted: its owner is not made, and so
// never gives it back.
void Meter::hold(std::size_t bytes) {
  held_ += bytes;
  if (held_ <= kMostHeld) return;
  held_ -= bytes;
  exceed("the values of the template take more than 512 MiB");
}

void Meter::add_work(std::size_t units) {
  work_ += units;
  if (work_ > kMostWork) exceed("the template takes too long");
}

void Charge::add(std::size_t bytes) {
  if (meter_ == nullptr) return;
  meter_->hold(bytes);
  bytes_ += bytes;
}

void work(std::size_t units) {
  if (metered != nullptr) metered->add_work(units);
}

void work_on(std::string_view text) { work(1 + text.size() / 16); }

void append(std::string& to, std::string_view more) {
  if (more.size() > kMostText - to.size()) exceed("a text exceeds 256 MiB");
  to += more;
}

std::size_t find_text(std::string_view text, std::string_view what,
                      std::size_t from) {
  const std::string_view rest = text.substr(from);
  if (what.empty()) return from;
  const void* found =
      ::memmem(rest.data(), rest.size(), what.data(), what.size());
  const std::size_t at =
      found == nullptr ? rest.npos
                       : static_cast<std::size_t>(
                             static_cast<const char*>(found) - text.data());
  work_on(found == nullptr ? rest : rest.substr(0, at - from));
  return at;
}

}  // namespace penstock::chat
