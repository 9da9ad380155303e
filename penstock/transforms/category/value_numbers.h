#pragma once

#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/aligned.h"

namespace penstock {

/// Of vectors whose places are visited in any order: in large pages, where the
/// system has them, the processor need not look up where the page of each is.
template <class Value>
struct LargePages {
  using value_type = Value;
  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>&) {}
  Value* allocate(std::size_t count) {
    AlignedBytes bytes = allocate_aligned(count * sizeof(Value));
    if (bytes == nullptr) throw std::bad_alloc();
    return reinterpret_cast<Value*>(bytes.release());
  }
  void deallocate(Value* values, std::size_t) {
    FreeAligned()(reinterpret_cast<std::byte*>(values));
  }
  friend bool operator==(LargePages, LargePages) { return true; }
};

/// Numbers different values 0, 1, ... in the order in which they come first.
/// Thread-safe while nothing is added.
class ValueNumbers {
 public:
  /// At most 2^32 - 2 of them, which would be more than 100 GiB.
  std::int64_t size() const { return static_cast<std::int64_t>(kept_.size()); }
  /// Valid until a value is added.
  std::string_view value(std::int64_t number) const {
    return value_of(kept_[static_cast<std::size_t>(number)]);
  }
  /// Its number; a new value gets the next one.
  std::int64_t add(std::string_view value);
  /// -1: it is not there.
  std::int64_t find(std::string_view value) const;
  // The same of many values, for which memory is read at the same time; one
  // number for each.
  void add(std::span<const std::string_view> values,
           std::span<std::int64_t> numbers);
  void find(std::span<const std::string_view> values,
            std::span<std::int64_t> numbers) const;

 private:
  static constexpr std::size_t kShort = 28;
  struct alignas(32) Kept {
    std::uint32_t size = 0;
    char bytes[kShort];  // a short value, or where it begins in long_
  };
  struct Slot {
    std::uint32_t tag = 0;     // of the hash
    std::uint32_t number = 0;  // of the value + 1; 0: empty
  };

  std::string_view value_of(const Kept& kept) const {
    return {begin_of(kept), kept.size};
  }
  const char* begin_of(const Kept& kept) const;
  Kept kept(std::string_view value);
  std::int64_t find(std::string_view value, std::uint32_t tag) const;
  std::int64_t add(std::string_view value, std::uint32_t tag);
  template <class Each>
  void each_prefetched(std::span<const std::string_view> values,
                       Each each) const;
  /// Where a value of this tag is looked for first.
  std::size_t home(std::uint32_t tag) const { return next(tag); }
  std::size_t next(std::size_t at) const { return at & (slots_.size() - 1); }
  void put(Slot slot);
  void grow();

  std::string long_;  // of values that are not short
  std::vector<Kept, LargePages<Kept>> kept_;
  // A power of 2, at most half of them in use.
  std::vector<Slot, LargePages<Slot>> slots_ =
      std::vector<Slot, LargePages<Slot>>(64);
};

}  // namespace penstock
