#include "penstock/sources/postgres/pg_timestamp.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

namespace penstock::postgres {
namespace {

constexpr std::int64_t kPerSecond = 1'000'000;
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kFrom1970 = 946'684'800;
constexpr std::int64_t kDaysOf400Years = 146'097;

// Division rounds down here, not towards zero: half a second before 2000 is
// second -1 and 500,000 microseconds.
std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// The largest and the smallest of its integers stand for the infinities.
template <class T>
int infinity_of(T value) {
  if (value == std::numeric_limits<T>::max()) return 1;
  return value == std::numeric_limits<T>::min() ? -1 : 0;
}

}  // namespace

PgTimestamp PgTimestamp::of_microseconds(std::int64_t since_2000) {
  PgTimestamp moment;
  moment.infinite_ = infinity_of(since_2000);
  moment.seconds_ = floor_of(since_2000, kPerSecond);
  moment.micros_ = since_2000 % kPerSecond;
  if (moment.micros_ < 0) moment.micros_ += kPerSecond;
  return moment;
}

PgTimestamp PgTimestamp::of_days(std::int32_t since_2000) {
  PgTimestamp moment;
  moment.infinite_ = infinity_of(since_2000);
  moment.seconds_ = since_2000 * kDay;
  moment.date_ = true;
  return moment;
}

std::optional<PgTimestamp> PgTimestamp::at(double since_1970) {
  // The difference is exact wherever a float64 still tells microseconds.
  double wanted =
      std::round((since_1970 - static_cast<double>(kFrom1970)) * 1e6);
  if (!(std::abs(wanted) < 0x1p63)) return std::nullopt;
  return of_microseconds(static_cast<std::int64_t>(wanted));
}

std::int64_t PgTimestamp::microseconds() const {
  return seconds_ * kPerSecond + micros_;
}

std::optional<double> PgTimestamp::seconds() const {
  if (infinite_ != 0) return std::nullopt;
  std::int64_t seconds = seconds_ + kFrom1970;
  if (micros_ == 0) return static_cast<double>(seconds);
  // Both exact in float64, so that their quotient is rounded once.
  constexpr std::int64_t kExact = (std::int64_t{1} << 53) / kPerSecond;
  if (seconds > -kExact && seconds < kExact)
    return static_cast<double>(seconds * kPerSecond + micros_) / 1e6;
  // Elsewhere by way of decimal text.
  std::int64_t fraction = micros_;
  if (seconds < 0) {
    ++seconds;
    fraction = kPerSecond - fraction;
  }
  char text[48];
  int size = std::snprintf(text, sizeof(text), "%lld.%06lld",
                           static_cast<long long>(seconds),
                           static_cast<long long>(fraction));
  double value = 0;
  std::from_chars(text, text + size, value);
  return value;
}

std::string PgTimestamp::text(bool zone) const {
  if (infinite_ != 0) return infinite_ > 0 ? "infinity" : "-infinity";
  std::int64_t days = floor_of(seconds_, kDay);
  std::int64_t seconds = seconds_ - days * kDay;
  // chrono's calendar ends with the year 32767; PostgreSQL's goes on.
  std::int64_t cycles = floor_of(days, kDaysOf400Years);
  std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::year{2000} / 1 / 1} +
      std::chrono::days{days - cycles * kDaysOf400Years}};
  std::int64_t year = int{date.year()} + 400 * cycles;
  char text[64];
  int size = std::snprintf(text, sizeof(text), "%04lld-%02u-%02u",
                           static_cast<long long>(year), unsigned{date.month()},
                           unsigned{date.day()});
  if (date_) return {text, static_cast<std::size_t>(size)};
  bool whole = micros_ % 1000 == 0;
  size += std::snprintf(
      text + size, sizeof(text) - static_cast<std::size_t>(size),
      "T%02d:%02d:%02d.%0*d%s", static_cast<int>(seconds / 3600),
      static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60),
      whole ? 3 : 6, static_cast<int>(whole ? micros_ / 1000 : micros_),
      zone ? "Z" : "");
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace penstock::postgres
