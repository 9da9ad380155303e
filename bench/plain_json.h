#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {

/// The other side of our parsing: the simdjson on-demand loop that one writes
/// from its manual for a JSON list of objects. It checks no more than it must
/// and counts nothing.
class PlainJson {
 public:
  /// `keys` are taken out of each object; `boolean` is the one of them that
  /// holds booleans.
  PlainJson(std::vector<std::string> keys, std::string boolean);
  ~PlainJson();

  /// The number of elements of each row of a column of lists, each followed by
  /// elements x keys numbers, a missing one NaN. Valid until the next call.
  std::span<const double> parse(const Column& column);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "3.0.1", and the instructions that it uses here: "icelake".
std::string simdjson_version();
std::string simdjson_instructions();

}  // namespace penstock
