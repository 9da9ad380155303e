#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "penstock/base/bytes.h"

namespace penstock::files {

/// Rows that are windows of one long run of elements: `length` of them each,
/// every `stride` elements. A value.
struct Windows {
  std::int64_t length = 0;  ///< 0: none; each element is a row
  std::int64_t stride = 1;

  explicit operator bool() const { return length > 0; }
  friend bool operator==(const Windows&, const Windows&) = default;
  /// How many rows these elements make; what is left at their end is not a row.
  std::int64_t count(std::int64_t elements) const;
  /// Where the elements of a row begin, and where those of the first `rows`
  /// rows (one at least) end.
  std::int64_t begin(std::int64_t row) const { return row * stride; }
  std::int64_t end(std::int64_t rows) const {
    return length == 0 ? rows : (rows - 1) * stride + length;
  }
  /// They lie side by side, as rows do.
  bool consecutive() const { return length == 0 || length == stride; }
  /// Rows to be read together where elements are: about as many as begin in
  /// so many of them; one at least, and not many megabytes.
  std::int64_t together(std::int64_t elements, std::size_t element_bytes) const;

  /// The bytes of `rows` rows, one after the other, from those of their
  /// elements; what is consecutive stays where it is.
  Bytes cut(Bytes&& elements, std::size_t element_bytes,
            std::int64_t rows) const;
};

/// Throws Error(request), source.window, where no file has as many elements as
/// one window: of the longest of them, in `where`.
[[noreturn]] void refuse_windows(const std::string& where,
                                 const std::string& column, std::int64_t length,
                                 std::int64_t longest);

}  // namespace penstock::files
