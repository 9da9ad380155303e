#include "penstock/sources/files/bad_rows.h"

#include <algorithm>
#include <cstring>

namespace penstock::files {

// Window w has the elements [w * stride, w * stride + length). It is bad where
// this overlaps [first, end) of a bad run of elements: w * stride < end, and w
// * stride + length > first. `done` keeps a window that touches two bad runs
// from being named twice.
std::vector<BadRows> bad_windows(std::vector<BadRows> elements,
                                 const Windows& windows, std::int64_t rows) {
  std::ranges::sort(elements, {}, &BadRows::first);
  std::vector<BadRows> bad;
  std::int64_t done = 0;
  for (const BadRows& one : elements) {
    // The first one that ends behind the first bad element.
    const std::int64_t before = one.first - windows.length;
    const std::int64_t first =
        std::max(done, before < 0 ? 0 : before / windows.stride + 1);
    done = std::min(rows, (one.end - 1) / windows.stride + 1);
    if (first < done) bad.push_back({first, done, one.why});
  }
  return bad;
}

void mark_bad(const std::vector<BadRows>& bad, std::size_t at, Column& column,
              std::vector<RowProblem>& problems) {
  if (bad.empty()) return;
  if (column.validity.size() == 0) {
    column.validity.resize(static_cast<std::size_t>((column.length + 7) / 8));
    std::memset(column.validity.mutable_data<std::byte>(), 0xff,
                column.validity.size());
  }
  auto* bits = column.validity.mutable_data<std::uint8_t>();
  for (const BadRows& rows : bad)
    for (std::int64_t row = rows.first; row < rows.end; ++row) {
      bits[row / 8] =
          static_cast<std::uint8_t>(bits[row / 8] & ~(1U << (row % 8)));
      problems.push_back({row, at, rows.why});
    }
}

}  // namespace penstock::files
