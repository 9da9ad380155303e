#pragma once

#include <charconv>

namespace penstock {

/// Reads a decimal number as std::from_chars does, but one that is too small
/// for its type becomes 0 with its sign, as in C, Python and pandas.
/// std::from_chars reports such a number as out of range and gives no value.
/// A number that is too large is still std::errc::result_out_of_range.
std::from_chars_result real_from_chars(const char* begin, const char* end,
                                       float& number);
std::from_chars_result real_from_chars(const char* begin, const char* end,
                                       double& number);

}  // namespace penstock
