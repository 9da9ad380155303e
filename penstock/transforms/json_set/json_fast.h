#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/transforms/json_set/elements.h"

namespace penstock {

/// Reads a list of objects in one pass, for texts like those before them.
///
/// It remembers the texts between values (`, "lat": `) in their order, and
/// expects the same again: one comparison finds a key with all that is around
/// it. A text that it reads is JSON and gives what ReferenceJson gives. All
/// else (errors, escapes in keys, deep nesting) it declines.
class FastJson {
 public:
  /// `parse` reads up to this many bytes after the text.
  static constexpr std::size_t kReadsBehind = 64;

  explicit FastJson(const KeySlots& slots);

  /// False means "ask the reference"; `out` is then of no use.
  bool parse(std::string_view text, Elements& out);

 private:
  /// A text between two values that holds a key, as it was seen before.
  struct Between {
    static constexpr std::size_t kLongest = 64;
    static constexpr std::size_t kWords = 3;
    std::uint64_t words[kWords] = {};
    std::uint64_t masks[kWords] = {};
    std::size_t length = 0;
    std::size_t slot = KeySlots::kNone;
    std::uint64_t high_bits = 0;
    char text[kLongest] = {};
  };
  struct Scan;

  bool same(const Between& known, const Scan& scan) const;
  bool parse_element(Scan& scan, Elements& out);
  bool find_key(Scan& scan, std::size_t& at, std::size_t& slot);
  std::size_t learn(std::string_view text, std::size_t at, std::size_t slot,
                    std::uint64_t high_bits);

  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kAhead = 3;  // how many keys may be left out
  KeySlots slots_;
  // Places from known_ on match nothing.
  std::array<Between, kMost + kAhead> expected_;
  std::size_t known_ = 0;
};

}  // namespace penstock
