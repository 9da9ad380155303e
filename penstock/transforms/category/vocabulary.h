#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/json.h"

namespace penstock {

/// What the values of a category are. Each is kept as bytes: a text as it is,
/// an integer as 8 bytes, a boolean as one.
enum class ClassType : std::uint8_t { text, integer, boolean };

/// Reads a value by its bytes in the order of classes, and shows it.
Json json_of_class(ClassType type, std::string_view value);
bool class_before(ClassType type, std::string_view a, std::string_view b);

/// Counts by value. Looking up allocates nothing.
class ClassCounts {
 public:
  void add(std::string_view value, std::int64_t count = 1);
  void add(const ClassCounts& other);

  struct Counted {
    std::string value;
    std::int64_t count = 0;
  };
  /// Those with at least `min_count`, in the order of classes.
  std::vector<Counted> classes(ClassType type, std::int64_t min_count,
                               bool by_frequency) const;
  std::int64_t total() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view value) const {
      return std::hash<std::string_view>()(value);
    }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;

  friend class Vocabulary;
};

/// The class of each value. Immutable, so thread-safe.
class Vocabulary {
 public:
  /// The classes as they are in the statistics. Throws Error(request), with
  /// `path` in front, where they are damaged.
  Vocabulary(const Json& statistics, ClassType type, bool unknown_is_class,
             const std::string& path);

  /// -1: none of the classes.
  std::int64_t find(std::string_view value) const;

 private:
  ClassCounts classes_;  // by value: its number
};

}  // namespace penstock
