#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <string>

namespace penstock {

/// Refuses what is not a whole number of T's range, from `least` on: what lies
/// beyond that range, CLI11 takes for its end.
template <class T>
CLI::Validator whole_number(T least) {
  auto why_not = [least](const std::string& text) {
    T value{};
    const char* end = text.data() + text.size();
    auto [to, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && to == end && value >= least)
      return std::string();
    return "found '" + text + "', expected a whole number from " +
           std::to_string(least) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  };
  return CLI::Validator(why_not, ">= " + std::to_string(least));
}

}  // namespace penstock
