#include "penstock/exec/spans.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "penstock/base/log.h"

namespace penstock {
namespace {

// Shared by those who tell and taken alone by those who come and go, so that
// nobody is told of anything once he has gone.
std::shared_mutex listening;
std::vector<std::shared_ptr<SpanListener>>& all() {
  // Never destroyed: threads may tell of their work while the program ends.
  static auto* list = new std::vector<std::shared_ptr<SpanListener>>;
  return *list;
}

template <class Call>
void each(Call call) noexcept {
  try {
    std::shared_lock lock(listening);
    for (const std::shared_ptr<SpanListener>& one : all()) call(*one);
  } catch (...) {
    log_exception(LogLevel::warning, "telling of a piece of work");
  }
}

}  // namespace

namespace spans {

std::atomic<int> listeners{0};

void tell_begin(std::string_view name) noexcept {
  each([&](SpanListener& one) { one.began(name); });
}

void tell(const Span& span) noexcept {
  each([&](SpanListener& one) { one.ended(span); });
}

}  // namespace spans

void SpanListener::began(std::string_view) {}

// The count is raised under the lock and read without it where work begins: a
// thread that still reads 0 leaves that piece of work out, which is harmless.
// The exclusive lock on leaving waits for calls under way, so a listener may be
// destroyed as soon as its handle is gone.
std::shared_ptr<void> listen_to_spans(std::shared_ptr<SpanListener> listener) {
  const SpanListener* named = listener.get();
  std::unique_lock lock(listening);
  all().push_back(std::move(listener));
  ++spans::listeners;
  return {nullptr, [named](void*) {
            std::unique_lock ending(listening);
            auto found = std::ranges::find(all(), named,
                                           &std::shared_ptr<SpanListener>::get);
            if (found == all().end()) return;
            all().erase(found);
            --spans::listeners;
          }};
}

}  // namespace penstock
