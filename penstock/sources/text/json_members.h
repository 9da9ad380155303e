#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/text/json_lines.h"

namespace penstock::text {

/// What the lines of a file have at a path.
enum class JsonPath : std::uint8_t {
  unknown,
  column,  ///< a value, or an object or a list that stays JSON text
  object,  ///< an object whose members are columns
};

/// Where the values of an object go.
struct JsonMembers {
  struct Member {
    Name name;
    JsonPath path = JsonPath::unknown;
    std::int64_t column = -1;        ///< of the reader; -1: it reads none here
    JsonMembers* members = nullptr;  ///< where those of an object go
  };
  std::vector<Member> all;
  std::map<std::string, std::size_t, std::less<>> by_name;

  /// The member that a key names, or null. A key with dots names the same one
  /// as the objects that its parts would: "a.b" is b of a. `next` becomes the
  /// number of the member after it.
  Member* find(std::string_view key, std::size_t& next);

 private:
  Member* inner(std::string_view key);
};

/// The columns of a reader by the objects in which they lie. One thread's.
class JsonTree {
 public:
  using Paths = std::map<std::string, JsonPath, std::less<>>;

  JsonTree() { levels_.emplace_back(); }
  JsonMembers& top() { return levels_.front(); }
  /// Adds a column, "a.b"; `paths` says what the lines of the file have.
  void add(std::string_view path, std::int64_t column, const Paths& paths);

 private:
  std::deque<JsonMembers> levels_;
};

}  // namespace penstock::text
