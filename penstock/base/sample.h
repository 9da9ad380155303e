#pragma once

#include <cstdint>
#include <limits>

namespace penstock {

/// A sample's number in its data set, from 0 on: its rank by ascending key
/// among the kept rows, or its position where there is no key.
using SampleId = std::int64_t;

/// Elements [begin, end) of a sample, where samples differ in length; a range
/// is cut off at the end of its sample. Samples of equal size are whole.
struct SampleRange {
  static constexpr std::int32_t kToItsEnd =
      std::numeric_limits<std::int32_t>::max();

  SampleId sample = -1;  ///< -1: padding, without elements
  std::int32_t begin = 0;
  std::int32_t end = kToItsEnd;

  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

}  // namespace penstock
