#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/json.h"
#include "penstock/base/json_fault.h"
#include "penstock/base/secret.h"

namespace penstock {
namespace {

/// Settings are shallow; this keeps recursion off the end of the stack.
constexpr std::size_t kDeepest = 200;

/// Whether the keys of one object are different, by their hashes.
/// A hash table of hashes alone: only where two are equal are the keys
/// compared, so an object of n members takes n steps instead of n^2, also a
/// hostile one.
class Keys {
 public:
  /// False where the last of these has the key of another. To be called for
  /// each member that is added.
  bool add(const Json::Object& members) {
    // Of this process: nobody can choose keys that meet in the table.
    static const std::uint64_t secret = std::random_device()();
    if (2 * members.size() > slots_.size()) grow();
    const std::string& key = members.back().first;
    const std::uint64_t hash = hash64(key, secret) | 1;  // 0: an empty slot
    std::uint64_t& slot = slot_of(hash);
    if (slot == hash)
      return std::none_of(
          members.begin(), members.end() - 1,
          [&key](const auto& member) { return member.first == key; });
    slot = hash;
    return true;
  }

 private:
  /// The one that holds this hash, or a free one for it.
  std::uint64_t& slot_of(std::uint64_t hash) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (hash >> 1) & mask;
    while (slots_[at] != 0 && slots_[at] != hash) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    const std::vector<std::uint64_t> before =
        std::exchange(slots_, std::vector<std::uint64_t>(std::max<std::size_t>(
                                  16, 4 * slots_.size())));
    for (std::uint64_t hash : before)
      if (hash != 0) slot_of(hash) = hash;
  }

  std::vector<std::uint64_t> slots_;
};

[[noreturn]] void refuse(std::string_view text, std::string_view origin,
                         std::size_t byte, std::string why, std::string next) {
  std::string_view before = text.substr(0, std::min(byte, text.size()));
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw Error(ErrorKind::request,
              {.code = "json.syntax",
               .what = "cannot parse the JSON of " + std::string(origin),
               .where = "line " + std::to_string(line) + ", column " +
                        std::to_string(before.size() - start + 1),
               .why = std::move(why),
               .next = std::move(next)});
}

/// An iterator over the text that records how far the parser has read.
struct Walk {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** latest;

  reference operator*() const { return *at; }
  Walk& operator++() {
    *latest = ++at;
    return *this;
  }
  friend bool operator==(const Walk& a, const Walk& b) { return a.at == b.at; }
};

/// Builds a Json from what nlohmann's parser reports (its SAX interface).
class Builder {
 public:
  Builder(std::string_view text, std::string_view origin)
      : text_(text), origin_(origin), latest_(text.data()) {}

  Json parse() {
    nlohmann::json::sax_parse(Walk{text_.data(), &latest_},
                              Walk{text_.data() + text_.size(), &latest_},
                              this);
    return std::move(root_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value > INT64_MAX) refuse_integer(std::to_string(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& written) {
    if (written.find_first_of(".eE") == std::string::npos)
      refuse_integer(written);
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(const std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    Open& object = open_.back();
    object.members.emplace_back(std::move(key), nullptr);
    if (!object.keys.add(object.members))
      refuse(text_, origin_, start_of_text(),
             "the key " +
                 Json(without_password(object.members.back().first)).dump() +
                 " appears twice in this object",
             "keep one of the two");
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& error) {
    std::size_t byte = position == 0 ? 0 : position - 1;
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error) != nullptr)
      refuse(text_, origin_, start_of_number(token),
             "the text holds a number that is too large",
             "write a number below 1.8e308");
    if (text_.find_first_not_of(" \t\r\n") == text_.npos)
      refuse(text_, origin_, 0,
             text_.empty() ? "the text is empty: it has 0 bytes"
                           : "the text is empty: it holds only white space",
             "check that it is the right file, and that it is complete");
    refuse(text_, origin_, start_of_fault(text_, byte),
           "the text is not valid JSON from here on",
           "look for a missing comma, quote or bracket just before this place");
  }

 private:
  /// A list or object whose end has not come yet.
  struct Open {
    bool object;
    Json::Array items = {};
    Json::Object members = {};  ///< the last one's value may not have come yet
    Keys keys = {};
  };

  bool add(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (!open_.back().object)
      open_.back().items.push_back(std::move(value));
    else
      open_.back().members.back().second = std::move(value);
    return true;
  }

  bool open(bool object) {
    if (open_.size() == kDeepest)
      refuse(text_, origin_, read() - 1,
             "lists and objects are nested more than 200 levels deep",
             "write the settings in fewer levels");
    open_.push_back({.object = object});
    return true;
  }

  bool close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    return closed.object ? add(std::move(closed.members))
                         : add(std::move(closed.items));
  }

  [[noreturn]] void refuse_integer(const std::string& written) {
    refuse(
        text_, origin_, start_of_number(written),
        "found " + written + ", expected an integer from " +
            std::to_string(INT64_MIN) + " to " + std::to_string(INT64_MAX),
        "write a smaller number, or a number with a fraction or an exponent");
  }

  /// How many bytes the parser has seen.
  std::size_t read() const {
    return static_cast<std::size_t>(latest_ - text_.data());
  }
  /// Where the number begins that was read last; of what follows, the parser
  /// has seen one character at most.
  std::size_t start_of_number(const std::string& number) const {
    std::size_t start = text_.rfind(number, read() - number.size());
    return start == text_.npos ? 0 : start;
  }
  /// Where the text begins whose closing quote was read last. Quotes in it
  /// follow a backslash, the opening one does not.
  /// The quote that closed the text is the last byte read. A quote within the
  /// text follows a backslash, and one that opens it cannot, because JSON has
  /// no backslash outside of texts.
  std::size_t start_of_text() const {
    std::size_t at = read() - 2;
    while (text_[at] != '"' || text_[at - 1] == '\\') --at;
    return at;
  }

  std::string_view text_;
  std::string_view origin_;
  const char* latest_;
  Json root_;
  std::vector<Open> open_;
};

}  // namespace

Json Json::parse(std::string_view text, std::string_view origin) {
  return Builder(text, origin).parse();
}

}  // namespace penstock
