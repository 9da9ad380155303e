#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/transforms/json_set/options.h"

namespace penstock {

/// What an element of a list holds for a key, one bit each so that many can be
/// counted at once. JSON null is `missing`.
enum class Held : std::uint8_t {
  missing = 0,
  number = 1,
  boolean = 2,
  other = 4
};

/// The keys that a parser looks for in each element: those of the field, then
/// the one to sort by, then those that only have to be there.
struct KeySlots {
  explicit KeySlots(const JsonSet& set);

  std::vector<std::string> names;
  std::size_t keys = 0;     ///< the first ones: they become the tensor
  std::size_t numeric = 0;  ///< the first ones must hold numbers or booleans
  std::optional<std::size_t> sort_by;
  std::vector<std::size_t> required;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  /// The slot of a key, or kNone for an extra key.
  std::size_t find(std::string_view key) const;
};

/// The parsed elements of one list, in list order: for each element and slot
/// what was held and, for numbers and booleans, the value (never -0.0), else
/// the quiet NaN. Keeps its memory from row to row.
struct Elements {
  static constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

  explicit Elements(std::size_t slots_per_element) : slots(slots_per_element) {}

  std::size_t slots;
  std::size_t count = 0;
  std::vector<double> values;  ///< count x slots are in use
  std::vector<Held> held;      ///< the same, and kWord more can be read
  static constexpr std::size_t kWord = 8;

  void clear() { count = 0; }
  /// Adds an element in which everything is missing; gives its first place.
  std::size_t add() {
    std::size_t first = count * slots;
    if (first + slots > values.size()) grow();
    std::fill_n(values.data() + first, slots, kMissing);
    // Whole words: faster than a call, and what follows is not in use.
    for (std::size_t i = 0; i < slots; i += kWord)
      std::memset(held.data() + first + i, 0, kWord);
    ++count;
    return first;
  }

 private:
  void grow();
};

/// Why a text gives no elements: what was found, and at which byte.
struct JsonFault {
  std::int64_t byte = -1;
  std::string why;
};

}  // namespace penstock
