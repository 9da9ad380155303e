#include "penstock/sources/text/text_rows.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/error.h"

namespace penstock::text {
namespace {

constexpr std::int64_t kChunk = 1 << 20;
constexpr std::size_t kBuffer = std::size_t{512} << 10;  // stays in a cache
constexpr std::size_t kLongestRow = std::size_t{64} << 20;

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
    RowRules here = rules;
    if (std::memchr(begin, rules.quote, held + more) == nullptr)
      here.quote = '\0';  // which need not be looked for in each row
    while (begin < end) {
      const char* next = here.end_of_row(begin, end);
      if (next == nullptr && at < text.size()) break;
      if (next == nullptr) next = end;  // the last row may lack its end
      if (!content_of(begin, next).empty()) ++chunk_rows;
      chunk.bytes += next - begin;
      line += here.lines_of(begin, next);
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
