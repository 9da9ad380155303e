#include "penstock/dataset/finish_rows.h"

namespace penstock {
namespace {

/// Puts the places of rows from `begin` on into `places`.
void find_places(std::span<const TensorPlace> all, std::size_t begin,
                 std::size_t count, std::vector<TensorPlace>& places) {
  places.assign(all.begin(), all.end());
  for (TensorPlace& place : places) {
    if (place.starts.empty() && place.data != nullptr)
      place.data += begin * place.bytes;
    if (!place.starts.empty())
      place.starts = place.starts.subspan(begin, count);
    if (!place.lengths.empty())
      place.lengths = place.lengths.subspan(begin, count);
  }
}

/// `places`: scratch.
void finish_part(const FillItem& item, std::size_t begin, std::size_t end,
                 std::span<const std::byte* const> stored,
                 const RowsToFinish& rows, std::vector<TensorPlace>& places,
                 Faults& faults) {
  if (begin == 0 && end == item.ids.size())
    return rows.by.finish(item, stored, rows.run_of, faults);
  const std::size_t count = end - begin;
  find_places(item.to, begin, count, places);
  FillItem part = item;
  part.ids = item.ids.subspan(begin, count);
  part.to = places;
  if (!item.ranges.empty()) part.ranges = item.ranges.subspan(begin, count);
  if (!item.occurrences.empty())
    part.occurrences = item.occurrences.subspan(begin, count);
  const std::size_t before = faults.rows.size();
  rows.by.finish(
      part, stored.empty() ? stored : stored.subspan(begin, count),
      [&](std::size_t field, std::size_t i) {
        return rows.run_of(field, begin + i);
      },
      faults);
  for (RowFault& fault : std::span(faults.rows).subspan(before))
    fault.row += static_cast<std::int64_t>(begin);
}

}  // namespace

void finish_both(const FillItem& item, const std::vector<bool>& other,
                 std::span<const std::byte* const> stored,
                 const RowsToFinish& rows, const RowsToFinish& others,
                 Faults& faults) {
  const std::size_t count = item.ids.size();
  std::vector<TensorPlace> places;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    std::size_t first = begin;
    while (first + 1 < count && item.ids[first] < 0) ++first;
    end = first + 1;
    while (end < count && (item.ids[end] < 0 || other[end] == other[first]))
      ++end;
    finish_part(item, begin, end, stored, other[first] ? others : rows, places,
                faults);
  }
}

}  // namespace penstock
