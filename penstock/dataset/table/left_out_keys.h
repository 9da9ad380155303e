#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {

/// Of a key's bytes: the same whatever source held it.
std::uint64_t hash_of_key(const KeyList& keys, std::int64_t at);

/// The keys of rows that are left out, to find one that another row has too.
///
/// It holds at most kMost of them, however many there are: those whose hashes
/// are the smallest. So it holds the same keys whatever order they came in, and
/// of two rows with one key both or neither. Not thread-safe.
class LeftOutKeys {
 public:
  static constexpr std::size_t kMost = 32768;

  void add(const KeyList& keys, std::int64_t at);
  void merge(LeftOutKeys&& other);
  /// Of all that were added.
  std::int64_t count() const { return count_; }
  /// Once, after the last was added, before it is asked.
  void sort();
  /// A key that was added twice, as in a message.
  const std::optional<std::string>& twice() const { return twice_; }
  bool empty() const { return keys_.empty(); }
  bool contains(const KeyList& keys, std::int64_t at) const;

 private:
  struct Key {
    std::uint64_t hash;
    std::string bytes;
    std::string shown;
    bool before(const Key& other) const {
      return hash != other.hash ? hash < other.hash : bytes < other.bytes;
    }
  };
  void add(Key key);

  std::vector<Key> keys_;
  /// Keys with this hash or a larger one are not held; none: all are.
  std::optional<std::uint64_t> bound_;
  std::optional<std::string> twice_;
  std::int64_t count_ = 0;
};

}  // namespace penstock
