#include "penstock/job/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"
#include "penstock/base/real_number.h"

// libyaml scans and parses; what its events mean as JSON is decided here.
//
// 1. Depth is bounded by kDeepest, so that recursion is.
// 2. Each value counts once where it is written and once more with each alias
//    that copies it: kMostValues bounds what a small file can grow to.
// 3. No tag is followed: nothing in a file chooses a type of ours.

namespace penstock {
namespace {

constexpr int kDeepest = 64;
constexpr std::int64_t kMostValues = 100'000;

class YamlEvents {
 public:
  YamlEvents(std::string_view text, const std::string& origin)
      : text_(text), origin_(origin) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &parser_, reinterpret_cast<const unsigned char*>(text.data()),
        text.size());
  }
  ~YamlEvents() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

  /// Valid until the next call.
  const yaml_event_t& next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      event_ = {};
      refuse_text();
    }
    return event_;
  }
  const yaml_event_t& current() const { return event_; }

  [[noreturn]] void refuse(const yaml_mark_t& at, std::string why) const {
    throw Error(ErrorKind::request,
                {.code = "manifest.yaml",
                 .what = "cannot read the settings",
                 .where = origin_ + ":" + std::to_string(at.line + 1),
                 .why = std::move(why),
                 .next = "write plain YAML, or the same settings as JSON"});
  }

 private:
  [[noreturn]] void refuse_text() const {
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    std::string why = parser_.problem == nullptr ? "the text is not valid YAML"
                                                 : parser_.problem;
    if (parser_.context != nullptr)
      why = parser_.context + (", " + std::move(why));
    yaml_mark_t at = parser_.problem_mark;
    if (parser_.error == YAML_READER_ERROR)  // which counts bytes alone
      at.line = static_cast<std::size_t>(
          std::ranges::count(text_.substr(0, parser_.problem_offset), '\n'));
    refuse(at, std::move(why));
  }

  const std::string_view text_;
  const std::string& origin_;
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};
};

std::string_view text_of(const unsigned char* bytes) {
  return reinterpret_cast<const char*>(bytes);
}

std::optional<Json> number_in(std::string_view text) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  if (begin == end) return std::nullopt;
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

// Words of YAML 1.1 (https://yaml.org/type/bool.html), as PyYAML reads them:
// yes, no, on and off are booleans, too, unless they are quoted. Numbers are
// decimal alone, so that 010 is ten, not eight.
Json plain_scalar(std::string_view text) {
  const std::string word = ascii_lower(text);
  if (word.empty() || word == "null" || word == "~") return {};
  for (const char* yes : {"true", "yes", "on"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off"})
    if (word == no) return false;
  if (std::optional<Json> number = number_in(text)) return *std::move(number);
  return std::string(text);
}

class YamlReader {
 public:
  YamlReader(std::string_view text, const std::string& origin)
      : events_(text, origin) {}

  Json document() {
    events_.next();  // the start of the stream
    if (events_.next().type == YAML_STREAM_END_EVENT)
      return Json(Json::Object{});
    Json made = value(events_.next(), 0).json;
    events_.next();  // the end of the document
    if (const yaml_event_t& more = events_.next();
        more.type != YAML_STREAM_END_EVENT)
      events_.refuse(more.start_mark, "a second document begins here");
    return made;
  }

 private:
  struct Counted {
    Json json;
    std::int64_t values = 1;  // in `json`, with itself
  };

  void count(std::int64_t values, const yaml_mark_t& at) {
    counted_ += values;
    if (counted_ > kMostValues)
      events_.refuse(
          at,
          "the document holds more than 100,000 values, counting those "
          "that aliases copy");
  }

  Counted value(const yaml_event_t& event, int depth) {
    const yaml_mark_t at = event.start_mark;
    if (depth > kDeepest)
      events_.refuse(
          at, "the values of the document are nested more than 64 levels deep");
    if (event.type == YAML_ALIAS_EVENT) {
      const auto found = anchors_.find(text_of(event.data.alias.anchor));
      if (found == anchors_.end())
        events_.refuse(at, "no anchor before it has the name of this alias");
      count(found->second.values, at);
      return found->second;
    }
    count(1, at);
    const std::string anchor = anchor_of(event);
    Counted made;
    if (event.type == YAML_SCALAR_EVENT)
      made.json = scalar(event);
    else
      made = event.type == YAML_SEQUENCE_START_EVENT ? sequence(depth)
                                                     : mapping(depth);
    if (!anchor.empty()) anchors_.insert_or_assign(anchor, made);
    return made;
  }

  /// Empty without an anchor. Refuses a tag.
  std::string anchor_of(const yaml_event_t& event) const {
    const unsigned char *anchor = nullptr, *tag = nullptr;
    if (event.type == YAML_SCALAR_EVENT) {
      anchor = event.data.scalar.anchor;
      tag = event.data.scalar.tag;
    } else if (event.type == YAML_SEQUENCE_START_EVENT) {
      anchor = event.data.sequence_start.anchor;
      tag = event.data.sequence_start.tag;
    } else {
      anchor = event.data.mapping_start.anchor;
      tag = event.data.mapping_start.tag;
    }
    if (tag != nullptr)
      events_.refuse(event.start_mark,
                     "the value has a tag, " + std::string(text_of(tag)));
    return anchor == nullptr ? "" : std::string(text_of(anchor));
  }

  static Json scalar(const yaml_event_t& event) {
    const std::string_view text(
        reinterpret_cast<const char*>(event.data.scalar.value),
        event.data.scalar.length);
    if (event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
      return plain_scalar(text);
    return std::string(text);
  }

  Counted sequence(int depth) {
    Counted made{Json(Json::Array{})};
    while (events_.next().type != YAML_SEQUENCE_END_EVENT) {
      Counted item = value(events_.current(), depth + 1);
      made.json.push_back(std::move(item.json));
      made.values += item.values;
    }
    return made;
  }

  Counted mapping(int depth) {
    Counted made{Json(Json::Object{})};
    std::vector<Json> merged;
    while (events_.next().type != YAML_MAPPING_END_EVENT) {
      const yaml_mark_t at = events_.current().start_mark;
      const std::string key = key_of(events_.current());
      Counted member = value(events_.next(), depth + 1);
      made.values += member.values;
      if (key == "<<") {
        if (!can_merge(member.json))
          events_.refuse(at, "'<<' needs a mapping or a list of mappings");
        merged.push_back(std::move(member.json));
      } else if (made.json.find(key) != nullptr) {
        events_.refuse(at, "the key '" + key + "' is given twice");
      } else {
        made.json[key] = std::move(member.json);
      }
    }
    for (const Json& from : merged) merge(from, made.json);
    return made;
  }

  std::string key_of(const yaml_event_t& event) const {
    if (event.type != YAML_SCALAR_EVENT)
      events_.refuse(event.start_mark, "a key is not text");
    anchor_of(event);  // refuses a tag
    return {reinterpret_cast<const char*>(event.data.scalar.value),
            event.data.scalar.length};
  }

  static bool can_merge(const Json& from) {
    if (from.is_object()) return true;
    if (!from.is_array()) return false;
    for (const Json& one : from.array())
      if (!one.is_object()) return false;
    return true;
  }

  // https://yaml.org/type/merge.html: a mapping's own keys win, then those of
  // the mapping that is named first. Merging comes after all keys are read,
  // wherever "<<" stands.
  static void merge(const Json& from, Json& into) {
    if (from.is_array()) {
      for (const Json& one : from.array()) merge(one, into);
      return;
    }
    for (const auto& [key, member] : from.object())
      if (into.find(key) == nullptr) into[key] = member;
  }

  YamlEvents events_;
  std::map<std::string, Counted, std::less<>> anchors_;
  std::int64_t counted_ = 0;
};

}  // namespace

Json parse_yaml(std::string_view text, const std::string& origin) {
  return YamlReader(text, origin).document();
}

}  // namespace penstock
