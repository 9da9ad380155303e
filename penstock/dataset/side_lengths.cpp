#include "penstock/dataset/side_lengths.h"

#include <algorithm>
#include <span>

namespace penstock {
namespace {

/// Samples whose lengths are asked for at once.
constexpr std::int64_t kAtOnce = std::int64_t{1} << 16;

}  // namespace

std::vector<std::int32_t> lengths_on(const Dataset& rows, Side side) {
  std::vector<std::int32_t> lengths(
      static_cast<std::size_t>(rows.rows_on(side)));
  std::vector<SampleId> ids;
  std::vector<SampleRange> ranges;
  for (std::int64_t first = 0; first < std::ssize(lengths); first += kAtOnce) {
    const std::int64_t end = std::min(first + kAtOnce, std::ssize(lengths));
    ids.clear();
    for (std::int64_t rank = first; rank < end; ++rank) ids.push_back(rank);
    rows.select(side, ids);
    ranges.clear();
    for (SampleId id : ids) ranges.push_back({.sample = id});
    rows.lengths(0, ranges,
                 std::span(lengths).subspan(static_cast<std::size_t>(first),
                                            ids.size()));
  }
  return lengths;
}

}  // namespace penstock
