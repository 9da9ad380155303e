#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "penstock/base/key.h"

namespace penstock {

/// The keys of one read, so that rows which arrive in any order can be put
/// where they were requested. Keeps its memory from read to read; the keys must
/// outlive its use.
class KeyLookup {
 public:
  void assign(const KeyList& keys);

  /// Different keys among them: groups 0, 1, ... by ascending key.
  std::size_t groups() const { return first_.size(); }
  /// A position that asked for this group.
  std::int64_t position(std::size_t group) const { return first_[group]; }
  std::size_t group_of(std::int64_t position) const {
    return group_of_[static_cast<std::size_t>(position)];
  }
  /// The group of a key, if it was asked for.
  std::optional<std::size_t> find(std::int64_t key) const;
  std::optional<std::size_t> find(std::string_view key) const;

 private:
  template <class Compare>
  std::optional<std::size_t> search(Compare compare) const;

  const KeyList* keys_ = nullptr;
  std::vector<std::int64_t> order_;    // positions by ascending key
  std::vector<std::size_t> group_of_;  // by position
  std::vector<std::int64_t> first_;    // by group
};

}  // namespace penstock
