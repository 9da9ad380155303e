#include "penstock/transforms/array/json_numbers.h"

#include <charconv>
#include <span>

#include "penstock/base/real_number.h"
#include "penstock/base/utf8.h"

namespace penstock {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

// Integers are kept beside the doubles as long as all are integers, because
// those beyond 2^53 would lose digits as doubles.
std::string JsonNumbers::read_number(const char*& at, const char* end) {
  const char* stop = at;
  while (stop < end && *stop != ',' && *stop != ']' && *stop != '[' &&
         !is_space(*stop))
    ++stop;
  std::int64_t integer = 0;
  double number = 0;
  const auto as_integer = std::from_chars(at, stop, integer);
  const auto as_number = real_from_chars(at, stop, number);
  // from_chars takes "inf" and "nan", which JSON has not.
  const char first = *at == '-' && at + 1 < stop ? at[1] : *at;
  if (first < '0' || first > '9' || as_number.ec != std::errc() ||
      as_number.ptr != stop)
    return "number " + std::to_string(numbers_.size()) + " is '" +
           beginning({at, static_cast<std::size_t>(stop - at)}) + "'";
  whole_ = whole_ && as_integer.ec == std::errc() && as_integer.ptr == stop;
  if (whole_) integers_.push_back(integer);
  numbers_.push_back(number);
  at = stop;
  return {};
}

std::string JsonNumbers::read(std::string_view text) {
  integers_.clear();
  numbers_.clear();
  whole_ = true;
  const char* at = text.data();
  const char* const end = at + text.size();
  int depth = 0;
  bool value_before = false;  // a comma or a bracket must come next
  bool comma_before = false;
  auto wrong = [&] {
    return "holds '" + beginning(text) + "', not a list of numbers: [1, 2.5]";
  };
  for (bool begun = false;; ++at) {
    while (at < end && is_space(*at)) ++at;
    if (begun && depth == 0) return at == end ? std::string() : wrong();
    if (at == end) return wrong();
    if (*at == '[') {
      if (value_before) return wrong();
      begun = true;
      ++depth;
    } else if (*at == ']' && depth > 0 && !comma_before) {
      --depth;
      value_before = true;
    } else if (*at == ',' && value_before) {
      value_before = false;
      comma_before = true;
      continue;
    } else {
      if (depth == 0 || value_before || *at == ',' || *at == ']')
        return wrong();
      std::string why = read_number(at, end);
      if (!why.empty()) return why;
      value_before = true;
      --at;
    }
    comma_before = false;
  }
}

ListedNumbers JsonNumbers::numbers() const {
  if (whole_)
    return {.dtype = Dtype::int64,
            .bytes = std::as_bytes(std::span(integers_)),
            .count = std::ssize(integers_)};
  return {.dtype = Dtype::float64,
          .bytes = std::as_bytes(std::span(numbers_)),
          .count = std::ssize(numbers_)};
}

}  // namespace penstock
