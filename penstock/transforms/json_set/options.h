#pragma once

#include <string>
#include <vector>

namespace penstock {

/// A JSON list of objects in one column -> [max, keys] and a mask [max].
struct JsonSet {
  /// What happens to a list of more than `max` elements.
  enum class Overflow { first, strongest, error };

  std::string column;
  std::vector<std::string> keys;
  int max = 0;
  int min = 1;  ///< shorter lists leave their row out
  Overflow overflow = Overflow::first;
  std::string sort_by;  ///< for `strongest`
  std::vector<std::string> required;
  bool standardize = false;
};

}  // namespace penstock
