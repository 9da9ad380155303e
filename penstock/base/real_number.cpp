#include "penstock/base/real_number.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace penstock {
namespace {

/// Whether a number that is out of range is at least 1, and so too large. Only
/// the power of ten of its first digit that is not 0 decides.
bool is_large(std::string_view token) {
  const std::size_t e = token.find_first_of("eE");
  const std::string_view digits = token.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first =
      std::min(digits.find_first_of("123456789"), digits.size());
  auto power = static_cast<std::int64_t>(first < point ? point - first - 1
                                                       : first - point);
  if (first > point) power = -power;
  if (e == token.npos) return power > 0;
  std::string_view exponent = token.substr(e + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t given = 0;
  const auto [end, error] = std::from_chars(
      exponent.data(), exponent.data() + exponent.size(), given);
  // Longer than any count of digits that could balance it.
  if (error == std::errc::result_out_of_range)
    return !exponent.starts_with('-');
  return given > -power;
}

// std::from_chars reports numbers that are too large and too small alike, and
// leaves `number` unset for both. A number below the least one is read as 0
// with its sign, as strtod and Python read it; one that is too large stays an
// error.
template <class Real>
std::from_chars_result read(const char* begin, const char* end, Real& number) {
  std::from_chars_result read = std::from_chars(begin, end, number);
  if (read.ec != std::errc::result_out_of_range ||
      is_large({begin, static_cast<std::size_t>(read.ptr - begin)}))
    return read;
  number = *begin == '-' ? Real{-0.0F} : Real{0};
  read.ec = {};
  return read;
}

}  // namespace

std::from_chars_result real_from_chars(const char* begin, const char* end,
                                       float& number) {
  return read(begin, end, number);
}

std::from_chars_result real_from_chars(const char* begin, const char* end,
                                       double& number) {
  return read(begin, end, number);
}

}  // namespace penstock
