#include "penstock/sources/postgres/numeric.h"

#include <charconv>
#include <limits>

#include "penstock/sources/postgres/big_endian.h"

namespace penstock::postgres {
namespace {

constexpr std::size_t kNumericHead = 8;
constexpr std::int64_t kBase = 10000;
constexpr std::size_t kGroupsOnStack = 64;

void put_four(char* at, std::uint16_t group) {
  at[0] = static_cast<char>('0' + group / 1000);
  at[1] = static_cast<char>('0' + group / 100 % 10);
  at[2] = static_cast<char>('0' + group / 10 % 10);
  at[3] = static_cast<char>('0' + group % 10);
}

}  // namespace

// numeric_send in PostgreSQL (utils/adt/numeric.c), each an int16, big-endian:
//   number of groups, weight, sign, scale, then the groups
// A group is a digit to the base 10000, and the value is the sum of group(i) *
// 10000^(weight - i). Groups of zeros at both ends are not sent: 10000 is one
// group, 1, with weight 1. The scale is only how many decimals to show.
std::optional<Numeric> Numeric::from(std::string_view bytes) {
  if (bytes.size() < kNumericHead) return std::nullopt;
  Numeric number;
  auto groups = load_big<std::uint16_t>(bytes.data());
  number.weight_ = load_big<std::int16_t>(bytes.data() + 2);
  number.sign_ = load_big<std::uint16_t>(bytes.data() + 4);
  number.scale_ = load_big<std::uint16_t>(bytes.data() + 6);
  number.groups_ = bytes.substr(kNumericHead);
  if (number.groups_.size() != std::size_t{2} * groups) return std::nullopt;
  for (std::int64_t at = 0; at < groups; ++at)
    if (number.group(at) >= kBase) return std::nullopt;
  switch (number.sign_) {
    case kPositive:
    case kNegative:
    case kNan:
    case kInfinity:
    case kMinusInfinity:
      return number;
    default:
      return std::nullopt;
  }
}

std::uint16_t Numeric::group(std::int64_t at) const {
  if (at < 0 || at >= static_cast<std::int64_t>(groups_.size() / 2)) return 0;
  return load_big<std::uint16_t>(groups_.data() + 2 * at);
}

// By way of decimal text, which from_chars rounds once: 0.ddddd * 10^e.
std::optional<double> Numeric::float64() const {
  using Float64 = std::numeric_limits<double>;
  if (sign_ == kNan) return Float64::quiet_NaN();
  if (sign_ == kInfinity) return Float64::infinity();
  if (sign_ == kMinusInfinity) return -Float64::infinity();
  std::size_t groups = groups_.size() / 2;
  if (groups == 0) return 0.0;
  char on_stack[4 * kGroupsOnStack + 32];
  std::string on_heap;
  char* text = on_stack;
  if (groups > kGroupsOnStack) {  // some 256 digits: rare
    on_heap.resize(4 * groups + 32);
    text = on_heap.data();
  }
  char* at = text;
  if (sign_ == kNegative) *at++ = '-';
  *at++ = '0';
  *at++ = '.';
  for (std::size_t i = 0; i < groups; ++i, at += 4)
    put_four(at, group(static_cast<std::int64_t>(i)));
  *at++ = 'e';
  at = std::to_chars(at, at + 16, 4 * (weight_ + 1)).ptr;
  double value = 0;
  if (std::from_chars(text, at, value).ec == std::errc()) return value;
  // Out of range, to which side tells the weight.
  if (weight_ < 0) return 0.0;
  return std::nullopt;
}

std::optional<std::int64_t> Numeric::int64() const {
  if (!finite()) return std::nullopt;
  auto groups = static_cast<std::int64_t>(groups_.size() / 2);
  for (std::int64_t at = weight_ < 0 ? 0 : weight_ + 1; at < groups; ++at)
    if (group(at) != 0) return std::nullopt;
  // Summed with its sign, because the smallest int64 has no positive twin.
  std::int64_t sign = sign_ == kNegative ? -1 : 1;
  std::int64_t value = 0;
  for (std::int64_t at = 0; at <= weight_; ++at)
    if (__builtin_mul_overflow(value, kBase, &value) ||
        __builtin_add_overflow(value, sign * group(at), &value))
      return std::nullopt;
  return value;
}

// A weight beyond the groups that were sent stands for zeros, which group()
// gives; a weight below -1 for zeros behind the point.
std::string Numeric::text() const {
  if (sign_ == kNan) return "NaN";
  if (sign_ == kInfinity) return "Infinity";
  if (sign_ == kMinusInfinity) return "-Infinity";
  std::string digits;
  for (std::int64_t at = 0; at <= weight_; ++at) {
    digits.resize(digits.size() + 4);
    put_four(&digits[digits.size() - 4], group(at));
  }
  std::size_t first = digits.find_first_not_of('0');
  digits.erase(0, first);
  if (digits.empty()) digits = "0";
  if (scale_ > 0) {
    std::string fraction;
    for (std::int64_t at = weight_ + 1; fraction.size() < scale_; ++at) {
      fraction.resize(fraction.size() + 4);
      put_four(&fraction[fraction.size() - 4], group(at));
    }
    digits += "." + fraction.substr(0, scale_);
  }
  return (sign_ == kNegative ? "-" : "") + digits;
}

}  // namespace penstock::postgres
