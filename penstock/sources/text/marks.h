#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/sources/text/row_rules.h"

namespace penstock::text {

/// Offsets in a chunk, ascending. Keeps its memory.
class Offsets {
 public:
  void clear() { count_ = 0; }
  std::size_t size() const { return count_; }
  std::uint32_t& operator[](std::size_t at) { return list_[at]; }
  std::uint32_t operator[](std::size_t at) const { return list_[at]; }
  std::span<const std::uint32_t> all() const { return {list_.data(), count_}; }

  void append(std::uint32_t offset) { append_bits(1, offset); }
  /// `first` + the number of each bit.
  void append_bits(std::uint64_t bits, std::uint32_t first) {
    if (list_.size() - count_ < 64) list_.resize(2 * list_.size() + 1024);
    std::uint32_t* to = list_.data() + count_;
    for (; bits != 0; bits &= bits - 1)
      *to++ = first + static_cast<std::uint32_t>(std::countr_zero(bits));
    count_ = static_cast<std::size_t>(to - list_.data());
  }

 private:
  std::vector<std::uint32_t> list_;
  std::size_t count_ = 0;
};

/// Appends where a byte is in a text, counted from `first` on.
void find_byte(std::string_view text, char wanted, std::uint32_t first,
               Offsets& to);

/// Where cells and rows of a chunk end: at delimiters and ends of lines that do
/// not stand in quotation marks.
struct Marks {
  Offsets cells;
  Offsets rows;           ///< those of `cells` that end a row, too
  bool unclosed = false;  ///< the chunk ends within quotation marks

  /// Of a chunk that begins with a row and has less than 4 GiB.
  void find(std::string_view chunk, const RowRules& rules);
  /// The same, byte by byte.
  void find_by_bytes(std::string_view chunk, const RowRules& rules);
};

/// The cells of a chunk, by row. One thread's; lines without any byte are no
/// rows.
class CellGrid {
 public:
  /// `cells`: as many as most rows have.
  CellGrid(RowRules rules, std::size_t cells) : rules_(rules), cells_(cells) {}

  /// Cuts a chunk that begins with a row; it must stay.
  void cut(std::string_view chunk);

  struct Row {
    std::uint32_t begin, end;  ///< its bytes, without those that end it
    std::uint32_t first;       ///< where its cells end
    std::uint32_t cells;  ///< how many; 0: a quotation mark is never closed
  };
  const std::vector<Row>& rows() const { return rows_; }
  std::string_view text(const Row& row) const {
    return chunk_.substr(row.begin, row.end - row.begin);
  }
  /// A cell as written, with its quotation marks.
  std::string_view cell(const Row& row, std::size_t at) const {
    const std::uint32_t begin =
        at == 0 ? row.begin : marks_.cells[row.first + at - 1] + 1;
    return {chunk_.data() + begin, marks_.cells[row.first + at] - begin};
  }
  std::string_view chunk() const { return chunk_; }

 private:
  void add_row(std::uint32_t begin, std::uint32_t end, std::size_t first,
               std::size_t last);

  const RowRules rules_;
  const std::size_t cells_;
  std::string_view chunk_;
  Marks marks_;
  std::vector<Row> rows_;
};

}  // namespace penstock::text
