#include "penstock/sources/files/windows.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"

namespace penstock::files {
namespace {

// Those that overlap are many times as large as their elements.
constexpr std::size_t kMostBytes = std::size_t{8} << 20;

}  // namespace

// n elements hold (n - length) / stride + 1 whole windows; what is left behind
// the last one is not a row.
std::int64_t Windows::count(std::int64_t elements) const {
  if (length == 0) return elements;
  return elements < length ? 0 : (elements - length) / stride + 1;
}

// A chunk of `elements` has elements / stride windows that begin in it. Its
// last ones reach into the next chunk, which is then decoded for both; that is
// why readers of overlapping windows keep chunks.
std::int64_t Windows::together(std::int64_t elements,
                               std::size_t element_bytes) const {
  if (length == 0) return std::max<std::int64_t>(1, elements);
  const std::size_t bytes = std::max<std::size_t>(
      1, element_bytes * static_cast<std::size_t>(length));
  return std::max<std::int64_t>(
      1, std::min(elements / stride,
                  static_cast<std::int64_t>(kMostBytes / bytes)));
}

Bytes Windows::cut(Bytes&& elements, std::size_t element_bytes,
                   std::int64_t rows) const {
  if (consecutive()) return std::move(elements);
  const std::size_t bytes = element_bytes * static_cast<std::size_t>(length);
  const std::size_t step = element_bytes * static_cast<std::size_t>(stride);
  Bytes windows;
  windows.resize(static_cast<std::size_t>(rows) * bytes);
  std::byte* to = windows.mutable_data<std::byte>();
  const std::byte* from = elements.data();
  for (std::int64_t row = 0; row < rows; ++row, to += bytes, from += step)
    std::memcpy(to, from, bytes);
  return windows;
}

void refuse_windows(const std::string& where, const std::string& column,
                    std::int64_t length, std::int64_t longest) {
  throw Error(ErrorKind::request,
              {.code = "source.window",
               .what = "cannot cut windows of column '" + column + "'",
               .where = where,
               .why = "found at most " + std::to_string(longest) +
                      " rows in a file, expected at least " +
                      std::to_string(length) + ", the length of a window",
               .next = "use a shorter \"window\", or name longer recordings"});
}

}  // namespace penstock::files
