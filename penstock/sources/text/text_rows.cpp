#include "penstock/sources/text/text_rows.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock::text {
namespace {

constexpr std::int64_t kChunk = 1 << 20;
constexpr std::size_t kBuffer = std::size_t{4} << 20;
constexpr std::size_t kLongestRow = std::size_t{64} << 20;

const char* find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(
      std::memchr(begin, c, static_cast<std::size_t>(end - begin)));
}

[[noreturn]] void refuse_long_row(const PlainText& text, std::int64_t line,
                                  bool quotes) {
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot find where a row ends",
               .where = text.place(line),
               .why = "the row that begins there is longer than 64 MiB",
               .next = quotes ? "look for a quotation mark that is not closed, "
                                "or set source.quote"
                              : "check that this is a text file"});
}

}  // namespace

const char* RowRules::end_of_row(const char* begin, const char* end) const {
  const char* newline = find(begin, end, '\n');
  // Most rows have no quotation mark: two searches, and no look at a byte.
  if (quote == '\0' ||
      find(begin, newline == nullptr ? end : newline, quote) == nullptr)
    return newline == nullptr ? nullptr : newline + 1;
  bool at_start = true;  // of a cell
  for (const char* at = begin; at < end; ++at) {
    if (at_start && *at == quote) {
      // To the mark that closes it; two marks stand for one.
      for (++at;; at += 2) {
        at = find(at, end, quote);
        if (at == nullptr) return nullptr;
        if (at + 1 == end || at[1] != quote) break;
      }
      at_start = false;
    } else if (*at == '\n') {
      return at + 1;
    } else {
      at_start = *at == delimiter;
    }
  }
  return nullptr;
}

std::string_view content_of(const char* begin, const char* end) {
  if (end > begin && end[-1] == '\n') --end;
  if (end > begin && end[-1] == '\r') --end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::int64_t lines_in(const char* begin, const char* end) {
  std::int64_t lines = 0;  // one, mostly
  while (begin < end && (begin = find(begin, end, '\n')) != nullptr) {
    ++begin;
    ++lines;
  }
  return lines;
}

TextRows find_rows(const PlainText& text, std::int64_t offset,
                   std::int64_t line, const RowRules& rules, StopFlag stop) {
  TextRows found;
  TextChunk chunk{.offset = offset, .line = line};
  std::int64_t rows = 0, chunk_rows = 0;
  auto end_chunk = [&] {
    if (chunk_rows > 0) {
      rows += chunk_rows;
      found.chunks.push_back(chunk);
      found.ends.push_back(rows);
    }
    chunk = {.offset = chunk.offset + chunk.bytes, .line = line};
    chunk_rows = 0;
  };
  std::vector<char> buffer;
  std::size_t held = 0;  // bytes of a row whose end is not read yet
  for (std::int64_t at = offset; at < text.size();) {
    end_if_stopped(stop);
    auto more = static_cast<std::size_t>(std::min<std::int64_t>(
        text.size() - at, static_cast<std::int64_t>(std::max(kBuffer, held))));
    if (buffer.size() < held + more) buffer.resize(held + more);
    text.read(at, buffer.data() + held, more);
    at += static_cast<std::int64_t>(more);
    const char* begin = buffer.data();
    const char* end = begin + held + more;
    while (begin < end) {
      const char* next = rules.end_of_row(begin, end);
      if (next == nullptr && at < text.size()) break;
      if (next == nullptr) next = end;  // the last row may lack its end
      if (!content_of(begin, next).empty()) ++chunk_rows;
      chunk.bytes += next - begin;
      line += rules.lines_of(begin, next);
      if (chunk.bytes >= kChunk) end_chunk();
      begin = next;
    }
    held = static_cast<std::size_t>(end - begin);
    if (held > kLongestRow) refuse_long_row(text, line, rules.quote != '\0');
    std::memmove(buffer.data(), begin, held);
  }
  end_chunk();
  return found;
}

}  // namespace penstock::text
