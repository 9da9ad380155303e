#include "penstock/dataset/side_lengths.h"

#include <algorithm>
#include <span>

namespace penstock {
namespace {

/// Samples whose lengths are asked for at once.
constexpr std::int64_t kAtOnce = std::int64_t{1} << 16;

/// The runs that are the first output whose lengths differ; null: it has
/// others.
const RunTable* runs_of(const DatasetFacts& facts) {
  if (facts.runs.empty() || facts.bins != nullptr) return nullptr;
  const std::vector<Field>& fields = facts.fitted->fields;
  auto varies = [](const Field& field) {
    return std::ranges::any_of(
        field.kind->facts().outputs,
        [](const Output& output) { return output.own_lengths(); });
  };
  const auto found = std::ranges::find_if(fields, varies);
  return found == fields.end()
             ? nullptr
             : facts.runs[static_cast<std::size_t>(found - fields.begin())]
                   .get();
}

}  // namespace

std::vector<std::int32_t> lengths_on(const Dataset& rows, Side side) {
  // All of a table are at hand, in their order.
  if (const RunTable* runs = runs_of(rows.facts());
      runs != nullptr && runs->rows() == rows.rows_on(side))
    return {runs->lengths().begin(), runs->lengths().end()};
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
