#pragma once

#include <cstdint>
#include <vector>

#include "penstock/base/key.h"
#include "penstock/transforms/detail/elements.h"
#include "penstock/transforms/prepare.h"

namespace penstock {

/// Counts what the kept rows of one block hold under each numeric key of one
/// json_set, and remembers the row with the smallest key that holds it. One
/// thread.
class Tally {
 public:
  explicit Tally(std::size_t keys);
  /// `rows` are the keys of the kept rows so far; the last is this row's.
  void add(const Elements& elements, const KeyList& rows);
  /// Adds all to `seen` and starts anew.
  void flush(const KeyList& rows, std::vector<Seen::Key>& seen);

 private:
  struct Count {
    std::int64_t in_block = 0;
    std::int64_t smallest = -1;  // index of the row with the smallest key
  };
  void add_bytes(std::uint64_t bytes, std::size_t first,
                 std::vector<Count>& counts, const KeyList& rows);
  void find_latest(const KeyList& rows);

  std::vector<Count> numbers_, booleans_;
  // The greatest of all smallest rows: a row behind it is no smallest one,
  // except of what was not seen before.
  std::int64_t latest_ = -1;
  bool before_latest_ = true;  // of the row that is being added
  bool changed_ = false;
};

/// Whether row key `a` sorts before `b`, both as KeyList::shown writes them.
bool sorts_before(const std::string& a, const std::string& b);

}  // namespace penstock
