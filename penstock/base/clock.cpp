#include "penstock/base/clock.h"

#include <time.h>

#include <cstddef>
#include <cstdio>
#include <new>
#include <thread>

namespace penstock {
namespace {

class WallClock final : public Clock {
 public:
  Nanoseconds now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  void sleep_until(Nanoseconds time) override {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(time));
  }
};

}  // namespace

Clock& wall_clock() {
  // Never destroyed: threads may run until the process is gone. Not on the
  // heap, because the first call may be where nothing shall be allocated.
  alignas(WallClock) static std::byte place[sizeof(WallClock)];
  static auto* clock = new (place) WallClock;
  return *clock;
}

// Time is the latest that any thread has slept to, so it never goes back: a
// thread that asks for an earlier time returns at once.
void VirtualClock::sleep_until(Nanoseconds time) {
  std::int64_t seen = now_.load();
  while (seen < time.count() &&
         !now_.compare_exchange_weak(seen, time.count())) {
  }
}

Nanoseconds thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Nanoseconds(nanoseconds_of(time));
}

std::string utc_text(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  auto whole = floor<milliseconds>(time);
  auto day = floor<days>(whole);
  year_month_day date(day);
  hh_mm_ss clock(whole - day);
  char text[40];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                int(date.year()), unsigned(date.month()), unsigned(date.day()),
                int(clock.hours().count()), int(clock.minutes().count()),
                int(clock.seconds().count()), int(clock.subseconds().count()));
  return text;
}

}  // namespace penstock
