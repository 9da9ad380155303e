#include "penstock/sources/text/text_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/side_by_side.h"
#include "penstock/sources/text/marks.h"

namespace penstock::text {
namespace {

constexpr std::int64_t kChunk = 1 << 20;
constexpr std::size_t kBuffer = std::size_t{512} << 10;  // stays in a cache
constexpr std::int64_t kPart = 4 << 20;  // of a file, for one thread
constexpr std::size_t kPartsAtOnce = 16;
constexpr std::int64_t kWorthThreads = 8 << 20;
constexpr std::size_t kLongestRow = std::size_t{64} << 20;

[[noreturn]] void refuse_long_row(const PlainText& text, std::int64_t line,
                                  bool quotes) {
  throw Error(
      ErrorKind::source,
      {.code = "files.damaged",
       .what = "cannot find the end of a row",
       .where = text.place(line),
       .why = "the row that begins there is longer than 64 MiB",
       .next = quotes
                   ? "look for an unclosed quotation mark, or set source.quote"
                   : "check that this is a text file"});
}

/// Puts rows together to chunks. Invariants: a chunk begins at the beginning of
/// a row and ends behind the end of one, whatever its quotation marks enclose;
/// chunks lie one behind the other; and `ends` ascends strictly, as a chunk of
/// empty lines alone is left out. So any chunk can be read by itself, by any
/// thread.
class RowWalk {
 public:
  RowWalk(const PlainText& text, std::int64_t offset, std::int64_t line,
          const RowRules& rules, StopFlag stop)
      : text_(text),
        rules_(rules),
        stop_(stop),
        chunk_{.offset = offset, .line = line},
        line_(line) {}

  TextRows run() && {
    walk_side_by_side();
    walk();
    end_chunk();
    return std::move(found_);
  }

 private:
  std::int64_t at() const { return chunk_.offset + chunk_.bytes; }
  void add(std::int64_t bytes, bool empty, std::int64_t lines) {
    chunk_rows_ += !empty;
    chunk_.bytes += bytes;
    line_ += lines;
    if (chunk_.bytes >= kChunk) end_chunk();
  }
  void end_chunk() {
    if (chunk_rows_ > 0) {
      rows_ += chunk_rows_;
      found_.chunks.push_back(chunk_);
      found_.ends.push_back(rows_);
    }
    chunk_ = {.offset = at(), .line = line_};
    chunk_rows_ = 0;
  }
  void walk_side_by_side();
  bool add_lines(std::int64_t begin, const Offsets& ends);
  void walk();

  const PlainText& text_;
  const RowRules rules_;
  const StopFlag stop_;
  TextRows found_;
  TextChunk chunk_;
  std::int64_t rows_ = 0, chunk_rows_ = 0, line_;
};

/// Where the lines of a part end, unless there are quotation marks, for which
/// rows must be walked over one by one. None lie behind the text's end.
bool find_ends(const PlainText& text, std::int64_t begin, char quote,
               Offsets& ends) {
  ends.clear();
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  const std::int64_t end = std::min(text.size(), begin + kPart);
  for (std::int64_t at = begin; at < end;
       at += static_cast<std::int64_t>(kBuffer)) {
    const auto bytes = static_cast<std::size_t>(
        std::min(end - at, static_cast<std::int64_t>(kBuffer)));
    text.read(at, buffer.get(), bytes);
    if (quote != '\0' && std::memchr(buffer.get(), quote, bytes) != nullptr)
      return false;
    find_byte({buffer.get(), bytes}, '\n',
              static_cast<std::uint32_t>(at - begin), ends);
  }
  return true;
}

// Parts of a large file are looked at by several threads for the ends of their
// lines. Where they may not be those of rows, walk() goes on. Whether a line
// end is inside quotation marks depends on all marks before it, so parts can be
// walked in parallel only as long as there are no marks at all. The first part
// with one ends this, and what threads found in later parts is dropped. Parts
// are added in their order, which keeps the invariants.
void RowWalk::walk_side_by_side() {
  struct Part {
    Offsets ends;
    bool plain = false;
  };
  std::vector<Part> parts(kPartsAtOnce);
  std::int64_t next = at();
  if (text_.size() - next < kWorthThreads) return;
  while (next < text_.size()) {
    auto begin = [&](std::size_t part) {
      return next + kPart * static_cast<std::int64_t>(part);
    };
    side_by_side(parts.size(), [&](std::size_t part) {
      end_if_stopped(stop_);
      parts[part].plain =
          find_ends(text_, begin(part), rules_.quote, parts[part].ends);
    });
    for (std::size_t part = 0; part < parts.size(); ++part)
      if (!parts[part].plain || !add_lines(begin(part), parts[part].ends))
        return;
    next = begin(parts.size());
  }
}

/// False: a row is to be looked at, since it may be empty, or is long.
bool RowWalk::add_lines(std::int64_t begin, const Offsets& ends) {
  for (std::uint32_t end : ends.all()) {
    const std::int64_t bytes = begin + end + 1 - at();
    if (bytes <= 2 || bytes > kPart) return false;
    add(bytes, false, 1);
  }
  return true;
}

// Reads at least as much as it holds of an unfinished row, so a long row is
// walked over O(log n) times and the whole takes O(n), not O(n^2).
void RowWalk::walk() {
  std::vector<char> buffer;
  std::size_t held = 0;  // bytes of a row whose end is not read yet
  for (std::int64_t from = at(); from < text_.size();) {
    end_if_stopped(stop_);
    auto more = static_cast<std::size_t>(std::min<std::int64_t>(
        text_.size() - from,
        static_cast<std::int64_t>(std::max(kBuffer, held))));
    if (buffer.size() < held + more) buffer.resize(held + more);
    text_.read(from, buffer.data() + held, more);
    from += static_cast<std::int64_t>(more);
    const char* begin = buffer.data();
    const char* end = begin + held + more;
    RowRules here = rules_;
    if (std::memchr(begin, rules_.quote, held + more) == nullptr)
      here.quote = '\0';  // which need not be looked for in each row
    while (begin < end) {
      const char* next = here.end_of_row(begin, end);
      if (next == nullptr && from < text_.size()) break;
      if (next == nullptr) next = end;  // the last row may lack its end
      add(next - begin, content_of(begin, next).empty(),
          here.lines_of(begin, next));
      begin = next;
    }
    held = static_cast<std::size_t>(end - begin);
    if (held > kLongestRow) refuse_long_row(text_, line_, rules_.quote != '\0');
    std::memmove(buffer.data(), begin, held);
  }
}

}  // namespace

TextRows find_rows(const PlainText& text, std::int64_t offset,
                   std::int64_t line, const RowRules& rules, StopFlag stop) {
  return RowWalk(text, offset, line, rules, stop).run();
}

std::int64_t line_of_row(const PlainText& text, const TextRows& rows,
                         const RowRules& rules, std::int64_t row) {
  const auto chunk = static_cast<std::size_t>(
      std::ranges::upper_bound(rows.ends, row) - rows.ends.begin());
  const TextChunk& of = rows.chunks.at(chunk);
  std::string bytes(static_cast<std::size_t>(of.bytes), '\0');
  text.read(of.offset, bytes.data(), bytes.size());
  std::int64_t left = row - (chunk == 0 ? 0 : rows.ends[chunk - 1]);
  std::int64_t found = of.line;
  each_row(bytes, rules, of.line, [&](std::string_view, std::int64_t line) {
    if (left-- == 0) found = line;
  });
  return found;
}

}  // namespace penstock::text
