#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json_text.h"
#include "penstock/sources/text/text_file.h"

// simdjson finds the members of a line's object; values that are not requested
// are passed over.

namespace penstock::text {

/// A name that keys are compared with.
struct Name {
  explicit Name(std::string_view text)
      : text(text), plain(text.find_first_of("\"\\") == text.npos) {}
  std::string text;
  bool plain;  ///< it is written unchanged
};

/// Which of `all` has the name of a field's key, where that is `next`, which
/// then goes on; else null. Members mostly come in the order in which they came
/// before.
template <class Named>
Named* next_named(std::vector<Named>& all,
                  const simdjson::ondemand::field& field, std::size_t& next) {
  if (next >= all.size()) next = 0;
  if (all.empty() || !all[next].name.plain ||
      !field.key().unsafe_is_equal(all[next].name.text))
    return nullptr;
  return &all[next++];
}

inline std::string_view without_space(std::string_view token) {
  return token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
}

/// What is wrong with the line `row`, which stands at `line`, "a.jsonl:51".
std::string why_bad_line(simdjson::error_code error, std::string_view row,
                         const std::string& line);

/// The lines of a chunk, one after the other, as documents.
class Lines {
 public:
  /// `work(document or error, line, row)` for each that is not empty.
  template <class Work>
  void each(const PlainText& text, const TextChunk& of, Work work) {
    const std::string_view bytes = buffer_.read(text, of);
    each_row(bytes, {}, of.line, [&](std::string_view row, std::int64_t line) {
      simdjson::ondemand::document document;
      const auto error = begin_json(
          parser_, row, row.size() + simdjson::SIMDJSON_PADDING, document);
      work(error, document, line, row);
    });
  }

 private:
  ChunkBuffer buffer_;
  simdjson::ondemand::parser parser_;
};
static_assert(ChunkBuffer::kPadding >= simdjson::SIMDJSON_PADDING);

}  // namespace penstock::text
