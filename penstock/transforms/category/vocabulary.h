#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/json.h"
#include "penstock/transforms/category/value_numbers.h"

namespace penstock {

/// What the values of a category are. Each is kept as bytes: a text unchanged,
/// an integer as 8 bytes, a boolean as one.
enum class ClassType : std::uint8_t { text, integer, boolean };

/// The value that these bytes are.
Json json_of_class(ClassType type, std::string_view value);

/// Counts by value.
class ClassCounts {
 public:
  void add(std::string_view value, std::int64_t count = 1);
  /// One each.
  void add(std::span<const std::string_view> values);
  /// Those of `other`, which has none then.
  void take(ClassCounts& other);

  struct Counted {
    std::string_view value;  ///< as long as nothing is added
    std::int64_t count = 0;
  };
  /// Those with at least `min_count`: integers as numbers, texts by UTF-8
  /// bytes; or the most frequent first.
  std::vector<Counted> classes(ClassType type, std::int64_t min_count,
                               bool by_frequency) const;
  std::int64_t total() const;
  std::int64_t count_of(std::string_view value) const;
  /// Writes these into a field's statistics, as "classes" and "counts". Returns
  /// what they count together.
  static std::int64_t write(const std::vector<Counted>& classes, ClassType type,
                            Json& statistics);

 private:
  ValueNumbers values_;
  std::vector<std::int64_t, LargePages<std::int64_t>> counts_;  // by number
  std::vector<std::int64_t> numbers_;  // of the values of a call
};

/// The class of each value. Immutable, so thread-safe.
class Vocabulary {
 public:
  /// The classes as they are in the statistics. Throws Error(request), with
  /// `path` in front, where they are damaged.
  Vocabulary(const Json& statistics, ClassType type, const std::string& path);
  /// Whether the classes in these statistics are those of this one.
  bool is_of(const Json& statistics) const;

  /// The classes, which have the numbers from 0 to this one.
  std::int64_t size() const { return values_.size(); }
  /// -1: none of the classes.
  std::int64_t find(std::string_view value) const {
    return values_.find(value);
  }
  void find(std::span<const std::string_view> values,
            std::span<std::int64_t> classes) const {
    values_.find(values, classes);
  }

 private:
  const ClassType type_;
  ValueNumbers values_;
};

}  // namespace penstock
