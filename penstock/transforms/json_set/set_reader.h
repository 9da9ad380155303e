#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/transforms/json_set/elements.h"
#include "penstock/transforms/json_set/json_fast.h"
#include "penstock/transforms/json_set/json_reference.h"

namespace penstock {

/// One json_set field at work: turns a row's text into its elements and picks
/// those that are kept. Owns scratch memory; one thread.
class SetReader {
 public:
  explicit SetReader(const JsonSet& set);

  /// What is wrong with the row, or nullopt. `readable_behind` is how many
  /// bytes after the text may be read.
  std::optional<JsonFault> read(std::string_view text,
                                std::size_t readable_behind);

  // Of the row read last:
  bool too_short() const;
  const Elements& elements() const { return elements_; }
  std::size_t keys() const { return slots_.keys; }
  /// The keys, and one more when it is sorted by a key that is not one of them.
  std::size_t numeric() const { return slots_.numeric; }
  /// Adds the number of kept elements and their values, in kept order.
  void append_to(Bytes& run) const;

 private:
  std::optional<JsonFault> check_required() const;
  void choose();

  JsonSet set_;
  KeySlots slots_;
  FastJson fast_;
  ReferenceJson reference_;
  Elements elements_;
  std::size_t kept_count_ = 0;
  std::vector<std::uint32_t> order_;  // with sort_by: the elements, sorted
  std::vector<char> padded_;
};

}  // namespace penstock
