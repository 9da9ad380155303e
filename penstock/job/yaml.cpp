#include "penstock/job/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"
#include "penstock/base/real_number.h"
#include "penstock/base/utf8.h"

// What people write settings in. A line is an indentation and what follows; a
// block is the lines that are indented as its first one is, and those below
// them that are indented further.

namespace penstock {
namespace {

constexpr int kDeepest = 64;

struct Line {
  std::size_t number = 0;  // from 1
  std::size_t indent = 0;
  std::string_view text;  // without spaces around, and without a comment
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Behind a text in quotes that begins at `at`; npos: it does not end.
std::size_t end_of_quotes(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote != '\'' || at + 1 == text.size() || text[at + 1] != '\'')
        return at + 1;
      ++at;
    }
  }
  return std::string_view::npos;
}

std::string_view without_comment(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t';
    if (text[at] == '#' && begins) return trimmed(text.substr(0, at));
    const bool opens = begins || text[at - 1] == '[' || text[at - 1] == '{' ||
                       text[at - 1] == ',' || text[at - 1] == ':';
    if ((text[at] != '"' && text[at] != '\'') || !opens) continue;
    const std::size_t end = end_of_quotes(text, at);
    if (end == text.npos) break;
    at = end - 1;
  }
  return trimmed(text);
}

class YamlParser {
 public:
  YamlParser(std::string_view text, const std::string& origin)
      : origin_(origin) {
    if (!is_utf8(text)) refuse(1, "the file is not UTF-8");
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      add_line(text.substr(0, end), ++number);
      text = end == text.npos ? std::string_view() : text.substr(end + 1);
    }
  }

  Json document() {
    if (lines_.empty()) return Json(Json::Object{});
    Json made = block(lines_[0].indent, 0);
    if (at_ < lines_.size())
      refuse(lines_[at_].number, "the indentation matches no line above");
    return made;
  }

 private:
  [[noreturn]] void refuse(std::size_t line, std::string why) const {
    throw Error(ErrorKind::request,
                {.code = "manifest.yaml",
                 .what = "cannot read the settings",
                 .where = origin_ + ":" + std::to_string(line),
                 .why = std::move(why),
                 .next = "write plain \"key: value\" lines, or JSON"});
  }

  void add_line(std::string_view text, std::size_t number) {
    const std::size_t indent =
        std::min(text.find_first_not_of(' '), text.size());
    if (indent < text.size() && text[indent] == '\t')
      refuse(number, "the line is indented by a tab");
    const std::string_view content = without_comment(text.substr(indent));
    if (content.empty() || (lines_.empty() && content == "---")) return;
    if (content == "---" || content == "...")
      refuse(number, "a second document begins here");
    if (content[0] == '%')
      refuse(number, "the line is a YAML directive, which is not supported");
    lines_.push_back({number, indent, content});
  }

  bool is_item(std::string_view text) const {
    return text == "-" || text.starts_with("- ");
  }

  Json block(std::size_t indent, int depth) {
    if (depth > kDeepest)
      refuse(lines_[at_].number, "the nesting is deeper than 64 levels");
    if (is_item(lines_[at_].text)) return list(indent, depth);
    if (colon_of(lines_[at_].text) == std::string_view::npos) {
      const Line line = lines_[at_++];
      return value(line.text, line.number, depth);
    }
    return mapping(indent, depth);
  }

  Json list(std::size_t indent, int depth) {
    Json made(Json::Array{});
    while (at_ < lines_.size() && lines_[at_].indent == indent &&
           is_item(lines_[at_].text)) {
      Line& line = lines_[at_];
      const std::string_view rest = trimmed(line.text.substr(1));
      if (rest.empty()) {
        ++at_;
        made.push_back(below(indent, depth));
        continue;
      }
      // What follows the dash is the first line of a block of its own.
      line.indent += static_cast<std::size_t>(rest.data() - line.text.data());
      line.text = rest;
      made.push_back(block(line.indent, depth + 1));
    }
    return made;
  }

  Json mapping(std::size_t indent, int depth) {
    Json made(Json::Object{});
    while (at_ < lines_.size() && lines_[at_].indent == indent) {
      const Line line = lines_[at_];
      if (is_item(line.text)) break;
      const std::size_t colon = colon_of(line.text);
      if (colon == std::string_view::npos)
        refuse(line.number, "found '" + std::string(line.text) +
                                "', expected \"key: value\"");
      const std::string key = key_of(line, colon);
      if (made.find(key) != nullptr)
        refuse(line.number, "the key '" + key + "' is given twice");
      const std::string_view rest = trimmed(line.text.substr(colon + 1));
      ++at_;
      made[key] =
          rest.empty() ? below(indent, depth) : value(rest, line.number, depth);
    }
    return made;
  }

  /// What belongs to a line that ends with its key or dash.
  Json below(std::size_t indent, int depth) {
    if (at_ >= lines_.size()) return {};
    const Line& next = lines_[at_];
    const bool further = next.indent > indent;
    // A list may stand as far left as the key that it belongs to.
    if (!further && !(next.indent == indent && is_item(next.text) &&
                      !is_item(lines_[at_ - 1].text)))
      return {};
    return block(next.indent, depth + 1);
  }

  /// Where a key ends; npos: none.
  std::size_t colon_of(std::string_view text) const {
    std::size_t at = 0;
    if (text[0] == '[' || text[0] == '{') return text.npos;
    if (text[0] == '"' || text[0] == '\'') {
      at = end_of_quotes(text, 0);
      if (at == text.npos) return at;
    }
    for (; at < text.size(); ++at)
      if (text[at] == ':' && (at + 1 == text.size() || text[at + 1] == ' '))
        return at;
    return text.npos;
  }

  std::string key_of(const Line& line, std::size_t colon) const {
    const std::string_view key = trimmed(line.text.substr(0, colon));
    if (key == "<<")
      refuse(line.number,
             "the line merges another mapping (<<), which is not supported");
    if (key.starts_with("? ")) refuse(line.number, "the key is not a text");
    if (!key.empty() && (key[0] == '"' || key[0] == '\''))
      return quoted(key, line.number);
    return std::string(key);
  }

  Json value(std::string_view text, std::size_t line, int depth) const {
    switch (text[0]) {
      case '&':
      case '*':
        refuse(line,
               "anchors and aliases are not supported: " + std::string(text));
      case '!':
        refuse(line, "tags are not supported: " + std::string(text));
      case '|':
      case '>':
        refuse(line, "text blocks are not supported");
      case '[':
      case '{': {
        Json made = flow(text, line, depth + 1);
        if (!trimmed(text).empty())
          refuse(line,
                 "something follows a list or mapping: " + std::string(text));
        return made;
      }
      case '"':
      case '\'':
        return quoted(text, line);
      default:
        return plain(text);
    }
  }

  /// A value in brackets or braces, which it takes off `text`.
  Json flow(std::string_view& text, std::size_t line, int depth) const {
    if (depth > kDeepest) refuse(line, "the nesting is deeper than 64 levels");
    const bool mapping = text[0] == '{';
    const char close = mapping ? '}' : ']';
    Json made = mapping ? Json(Json::Object{}) : Json(Json::Array{});
    text = trimmed(text.substr(1));
    while (!text.empty() && text[0] != close) {
      std::string key;
      if (mapping) {
        key = scalar_in_flow(text, line, ":");
        if (text.empty() || text[0] != ':') refuse(line, "a key has no value");
        text = trimmed(text.substr(1));
        if (text.empty()) break;
      }
      Json item;
      if (text[0] == '[' || text[0] == '{') {
        item = flow(text, line, depth + 1);
      } else {
        const bool is_quoted = text[0] == '"' || text[0] == '\'';
        const std::string word = scalar_in_flow(text, line, "");
        item = is_quoted ? Json(word) : value(word, line, depth);
      }
      if (!mapping)
        made.push_back(std::move(item));
      else if (made.find(key) != nullptr)
        refuse(line, "the key '" + key + "' is given twice");
      else
        made[key] = std::move(item);
      if (!text.empty() && text[0] == ',')
        text = trimmed(text.substr(1));
      else if (!text.empty() && text[0] != close)
        refuse(line, "a comma is missing before '" + std::string(text) + "'");
    }
    if (text.empty())
      refuse(line, "a list or mapping does not end on its line");
    text = trimmed(text.substr(1));
    return made;
  }

  /// A text up to a comma or the end of what it stands in, taken off `text`.
  std::string scalar_in_flow(std::string_view& text, std::size_t line,
                             std::string_view ends) const {
    std::string word;
    if (text[0] == '"' || text[0] == '\'') {
      const std::size_t end = end_of_quotes(text, 0);
      if (end == text.npos) refuse(line, "a quoted text does not end");
      word = quoted(text.substr(0, end), line);
      text = trimmed(text.substr(end));
      return word;
    }
    const std::size_t end =
        std::min(text.find_first_of(std::string(",]}") + std::string(ends)),
                 text.size());
    word = std::string(trimmed(text.substr(0, end)));
    if (word.empty()) refuse(line, "a value is missing");
    text = trimmed(text.substr(end));
    return word;
  }

  std::string quoted(std::string_view text, std::size_t line) const {
    if (end_of_quotes(text, 0) != text.size())
      refuse(line, "a quoted text does not end, or something follows it");
    const std::string_view inner = text.substr(1, text.size() - 2);
    std::string made;
    if (text[0] == '\'') {
      for (std::size_t i = 0; i < inner.size(); ++i) {
        made += inner[i];
        if (inner[i] == '\'') ++i;  // two stand for one
      }
      return made;
    }
    // Escapes are those of JSON; the few others are refused there.
    return Json::parse(text, origin_ + ":" + std::to_string(line)).string();
  }

  static std::optional<Json> number_of(std::string_view text) {
    const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
    const char* end = text.data() + text.size();
    if (begin == end || *begin == 'i' || *begin == 'n') return std::nullopt;
    std::int64_t whole = 0;
    if (auto [to, error] = std::from_chars(begin, end, whole);
        error == std::errc() && to == end)
      return Json(whole);
    double real = 0;
    if (auto [to, error] = real_from_chars(begin, end, real);
        error == std::errc() && to == end && std::isfinite(real))
      return Json(real);
    return std::nullopt;
  }

  static Json plain(std::string_view text) {
    const std::string word = ascii_lower(text);
    if (word == "null" || word == "~") return {};
    for (const char* yes : {"true", "yes", "on"})
      if (word == yes) return true;
    for (const char* no : {"false", "no", "off"})
      if (word == no) return false;
    if (std::optional<Json> number = number_of(text)) return *number;
    return std::string(text);
  }

  const std::string& origin_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

}  // namespace

Json parse_yaml(std::string_view text, const std::string& origin) {
  return YamlParser(text, origin).document();
}

}  // namespace penstock
