#include "penstock/sources/timestamp.h"

#include <charconv>
#include <chrono>
#include <cstdint>

namespace penstock {
namespace {

constexpr int kFractionDigits = 18;

/// Takes pieces off the front of a text.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// A number of exactly `digits` digits, or -1.
  int take_number(std::size_t digits) {
    if (rest_.size() < digits) return -1;
    int value = 0;
    for (char c : rest_.substr(0, digits)) {
      if (c < '0' || c > '9') return -1;
      value = 10 * value + (c - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }

 private:
  std::string_view rest_;
};

bool within(int value, int most) { return value >= 0 && value <= most; }

/// The fraction in units of 10^-18; false when there are no digits or more.
bool take_fraction(Pieces& text, std::int64_t& fraction) {
  int digits = 0;
  for (int digit; (digit = text.take_number(1)) >= 0; ++digits) {
    if (digits == kFractionDigits) return false;
    fraction = 10 * fraction + digit;
  }
  for (int i = digits; i < kFractionDigits; ++i) fraction *= 10;
  return digits > 0;
}

bool take_time(Pieces& text, std::int64_t& seconds, std::int64_t& fraction) {
  int hour = text.take_number(2);
  if (!within(hour, 23) || !text.take(':')) return false;
  int minute = text.take_number(2);
  if (!within(minute, 59)) return false;
  int second = 0;
  if (text.take(':')) {
    second = text.take_number(2);
    if (!within(second, 59)) return false;
    if (text.take('.') && !take_fraction(text, fraction)) return false;
  }
  seconds += hour * 3600 + minute * 60 + second;
  return true;
}

bool take_zone(Pieces& text, std::int64_t& seconds) {
  if (text.at_end() || text.take('Z')) return true;
  bool west = text.next_is('-');
  if (!text.take('+') && !text.take('-')) return false;
  int hour = text.take_number(2);
  if (!within(hour, 23)) return false;
  int minute = 0;
  if (!text.at_end()) {
    text.take(':');
    minute = text.take_number(2);
    if (!within(minute, 59)) return false;
  }
  int offset = hour * 3600 + minute * 60;
  seconds += west ? offset : -offset;
  return true;
}

/// seconds + fraction * 10^-18 by way of decimal text: from_chars rounds it
/// once, which a sum of two float64 would not.
double rounded(std::int64_t seconds, std::int64_t fraction) {
  bool negative = seconds < 0;
  if (negative) {
    seconds = -seconds;
    if (fraction > 0) {
      --seconds;
      fraction = 1'000'000'000'000'000'000 - fraction;
    }
  }
  char text[48];
  char* at = std::to_chars(text, text + sizeof(text), seconds).ptr;
  *at++ = '.';
  for (int i = kFractionDigits; i-- > 0; fraction /= 10)
    at[i] = static_cast<char>('0' + fraction % 10);
  double value = 0;
  std::from_chars(text, at + kFractionDigits, value);
  return negative ? -value : value;
}

}  // namespace

// ISO 8601 as far as RFC 3339 takes it, and what databases print: a date, or a
// date and a time with 'T' or a blank between, with an offset or without, which
// means UTC. No leap seconds: second 60 is refused, as POSIX time cannot say
// it.
std::optional<double> timestamp_from(std::string_view text) {
  Pieces pieces(text);
  int year = pieces.take_number(4);
  if (year < 1 || !pieces.take('-')) return std::nullopt;
  int month = pieces.take_number(2);
  if (month < 1 || !pieces.take('-')) return std::nullopt;
  int day = pieces.take_number(2);
  if (day < 1) return std::nullopt;
  std::chrono::year_month_day date{
      std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
      std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;

  std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  std::int64_t seconds = days * 86400;
  std::int64_t fraction = 0;
  if (pieces.at_end()) return static_cast<double>(seconds);
  if (!pieces.take('T') && !pieces.take(' ')) return std::nullopt;
  if (!take_time(pieces, seconds, fraction) || !take_zone(pieces, seconds) ||
      !pieces.at_end())
    return std::nullopt;
  return rounded(seconds, fraction);
}

}  // namespace penstock
