#include "penstock/transforms/json_set/decimal.h"

#include "penstock/base/real_number.h"

namespace penstock::decimal {

// Division by an invariant integer through a reciprocal of 64 bits (Moeller and
// Granlund 2011). The lowest bit of the result is sticky: it says whether
// anything was left over, so that converting it to a double rounds as the exact
// quotient would, ties included.
std::uint64_t exact_half_quotient(std::uint64_t high, const Divisor& by) {
  std::uint64_t quotient = high + upper_product(by.reciprocal, high);
  // At most 2 too small, so the rest is below three divisors.
  auto rest = (static_cast<unsigned __int128>(high) << 64) -
              static_cast<unsigned __int128>(quotient) * by.value;
  for (; rest >= by.value; rest -= by.value) ++quotient;
  return (quotient >> 1) | (quotient & 1) | static_cast<unsigned>(rest != 0);
}

// The grammar of RFC 8259, then the standard library's exact conversion: for
// exponents, long integers and more digits than a word holds.
const char* read_odd_number(const char* from, const char* end, double& number) {
  const char* p = from;
  auto take_digits = [&] {
    const char* start = p;
    while (p < end && *p >= '0' && *p <= '9') ++p;
    return p - start;
  };
  if (p < end && *p == '-') ++p;
  bool zero = p < end && *p == '0';
  auto whole = take_digits();
  if (whole == 0 || (zero && whole > 1)) return nullptr;
  if (p < end && *p == '.') {
    ++p;
    if (take_digits() == 0) return nullptr;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end && (*p == '+' || *p == '-')) ++p;
    if (take_digits() == 0) return nullptr;
  }
  auto [stop, error] = real_from_chars(from, p, number);
  if (error != std::errc() || stop != p) return nullptr;
  number += 0.0;  // -0.0 becomes 0.0
  return p;
}

}  // namespace penstock::decimal
