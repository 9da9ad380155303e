#include "penstock/sources/text/marks.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// 64 bytes at a time. Where they hold no quotation mark, all delimiters and
// ends of lines are marks, or within a cell that began with one none is. Where
// they do, those are marks before which their number is even; unless one stands
// where it counts for nothing, as in 5",6: then the bytes are gone through one
// by one.

namespace penstock::text {
namespace {

constexpr std::size_t kBlock = 64;

/// A bit for each byte that is `c`.
std::uint64_t equal_bits(const char* block, char c) {
  std::uint64_t bits = 0;
#if defined(__x86_64__)
  const __m128i wanted = _mm_set1_epi8(c);
  for (int part = 3; part >= 0; --part) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * part));
    bits = bits << 16 | static_cast<std::uint32_t>(
                            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)));
  }
#else
  for (std::size_t at = kBlock; at-- > 0;)
    bits = bits << 1 | static_cast<std::uint64_t>(block[at] == c);
#endif
  return bits;
}

// What is known of the byte before. It is all the state that passes from one
// block of 64 bytes to the next, and a chunk begins at the start of a row, so
// it begins as `start`: no block needs to look back.
enum class Within : std::uint8_t {
  start,    // of a cell
  plain,    // a cell, outside of quotation marks
  quoted,   // inside of them
  closing,  // behind one that closes, unless another follows
};

struct Bits {
  std::uint64_t cells = 0, rows = 0;  // that end there
};

Bits bits_by_bytes(std::string_view block, const RowRules& rules,
                   Within& within) {
  Bits bits;
  for (std::size_t at = 0; at < block.size(); ++at) {
    const char c = block[at];
    const bool quote = c == rules.quote && rules.quote != '\0';
    if (within == Within::quoted) {
      if (quote) within = Within::closing;
    } else if (quote && within != Within::plain) {
      within = Within::quoted;
    } else if (c == '\n' || c == rules.delimiter) {
      within = Within::start;
      bits.cells |= std::uint64_t{1} << at;
      if (c == '\n') bits.rows |= std::uint64_t{1} << at;
    } else {
      within = Within::plain;
    }
  }
  return bits;
}

/// Each bit: whether up to it, itself included, an odd number of bits is set. A
/// prefix sum modulo 2 in six steps; a carry-less multiplication by all ones
/// would give the same.
std::uint64_t odd_so_far(std::uint64_t bits) {
  for (int step = 1; step < 64; step *= 2) bits ^= bits << step;
  return bits;
}

/// Where quotation marks stand where they belong: around whole cells, and
/// two within them for one. False: elsewhere, too. The parity of the marks
/// before a byte says whether it is inside, as a doubled mark flips it twice.
/// This holds only where each opening mark stands at the start of a cell;
/// `opening` has the places where one may stand, and a mark anywhere else makes
/// the parity meaningless, so the caller falls back.
bool bits_of_quoted(const char* block, std::uint64_t quotes,
                    const RowRules& rules, Within& within, Bits& bits) {
  const std::uint64_t inside =
      odd_so_far(quotes) ^ (within == Within::quoted ? ~std::uint64_t{0} : 0);
  const std::uint64_t closing = quotes & ~inside;
  const std::uint64_t outside = ~(inside | quotes);
  bits.rows = equal_bits(block, '\n') & outside;
  bits.cells = bits.rows | (equal_bits(block, rules.delimiter) & outside);
  const bool may_open = within == Within::start || within == Within::closing;
  const std::uint64_t opening = (bits.cells | closing) << 1 | may_open;
  if ((quotes & inside & ~opening) != 0) return false;
  auto last = [](std::uint64_t of) { return (of >> 63) != 0; };
  within = last(inside)       ? Within::quoted
           : last(closing)    ? Within::closing
           : last(bits.cells) ? Within::start
                              : Within::plain;
  return true;
}

Bits bits_of(std::string_view block, const RowRules& rules, Within& within) {
  if (block.size() < kBlock) return bits_by_bytes(block, rules, within);
  const char* bytes = block.data();
  const std::uint64_t quotes =
      rules.quote == '\0' ? 0 : equal_bits(bytes, rules.quote);
  Bits bits;
  if (quotes != 0)
    return bits_of_quoted(bytes, quotes, rules, within, bits)
               ? bits
               : bits_by_bytes(block, rules, within);
  if (within == Within::quoted) return {};
  bits.rows = equal_bits(bytes, '\n');
  bits.cells = bits.rows | equal_bits(bytes, rules.delimiter);
  within = (bits.cells >> 63) != 0 ? Within::start : Within::plain;
  return bits;
}

template <class BitsOf>
void find_marks(std::string_view chunk, const RowRules& rules, Marks& to,
                BitsOf bits_of_block) {
  to.cells.clear();
  to.rows.clear();
  Within within = Within::start;
  for (std::size_t at = 0; at < chunk.size(); at += kBlock) {
    const Bits bits = bits_of_block(chunk.substr(at, kBlock), rules, within);
    to.cells.append_bits(bits.cells, static_cast<std::uint32_t>(at));
    to.rows.append_bits(bits.rows, static_cast<std::uint32_t>(at));
  }
  to.unclosed = within == Within::quoted;
}

}  // namespace

void find_byte(std::string_view text, char wanted, std::uint32_t first,
               Offsets& to) {
  std::size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock)
    to.append_bits(equal_bits(text.data() + at, wanted),
                   first + static_cast<std::uint32_t>(at));
  for (; at < text.size(); ++at)
    if (text[at] == wanted) to.append(first + static_cast<std::uint32_t>(at));
}

void Marks::find(std::string_view chunk, const RowRules& rules) {
  find_marks(chunk, rules, *this, bits_of);
}

void Marks::find_by_bytes(std::string_view chunk, const RowRules& rules) {
  find_marks(chunk, rules, *this, bits_by_bytes);
}

void CellGrid::cut(std::string_view chunk) {
  chunk_ = chunk;
  rows_.clear();
  marks_.find(chunk, rules_);
  std::uint32_t begin = 0;
  std::size_t first = 0;
  for (const std::uint32_t end : marks_.rows.all()) {
    std::size_t last = first + cells_ - 1;  // mostly
    if (last >= marks_.cells.size() || marks_.cells[last] != end)
      for (last = first; marks_.cells[last] != end;) ++last;
    add_row(begin, end + 1, first, last);
    begin = end + 1;
    first = last + 1;
  }
  if (begin == chunk.size()) return;
  // The last row lacks its end.
  const std::size_t last = marks_.cells.size();
  const auto end = static_cast<std::uint32_t>(chunk.size());
  marks_.cells.append(end);
  add_row(begin, end, first, last);
  if (marks_.unclosed) rows_.back().cells = 0;
}

/// Of the bytes [begin, end), whose cells end at these marks.
void CellGrid::add_row(std::uint32_t begin, std::uint32_t end,
                       std::size_t first, std::size_t last) {
  const std::string_view row =
      content_of(chunk_.data() + begin, chunk_.data() + end);
  if (row.empty()) return;
  end = begin + static_cast<std::uint32_t>(row.size());
  // A "\r" at its end is no delimiter, either.
  if (last > first && marks_.cells[last - 1] >= end) --last;
  marks_.cells[last] = end;
  rows_.push_back({.begin = begin,
                   .end = end,
                   .first = static_cast<std::uint32_t>(first),
                   .cells = static_cast<std::uint32_t>(last - first + 1)});
}

}  // namespace penstock::text
