#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <string_view>
#include <unordered_map>

namespace penstock {

/// Finds the places of names in a list in constant time, however long it is:
/// for whoever looks up many of them. The names must stay where they are.
class NameIndex {
 public:
  NameIndex() = default;
  /// `name` is the member of an item that names it. Of equal names the first
  /// counts.
  template <class Items, class Name>
  NameIndex(const Items& items, Name name) {
    places_.reserve(std::ranges::size(items));
    for (const auto& item : items) add(std::invoke(name, item));
  }

  /// Gives a name the next place; false where it has one.
  bool add(std::string_view name) {
    return places_.try_emplace(name, next_++).second;
  }
  std::optional<std::size_t> find(std::string_view name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }

 private:
  std::unordered_map<std::string_view, std::size_t> places_;
  std::size_t next_ = 0;
};

}  // namespace penstock
