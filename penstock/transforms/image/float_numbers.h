#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

/// Makes the float32 numbers of bytes by arithmetic, eight at once, where that
/// gives those of a table to the last bit. Immutable, so thread-safe.
class FloatNumbers {
 public:
  using Table = std::array<float, 256>;

  /// The table's number of a byte is about (byte / 255 - mean) / std.
  FloatNumbers() = default;
  FloatNumbers(float mean, float std, const Table& table);

  /// False: one of the table's numbers is another one, or this processor has
  /// no such code.
  bool exact() const { return exact_; }
  /// `past_caches`: what is written does not take the place of other data in
  /// the caches, and a fence must follow before another thread may read it.
  void write(const std::uint8_t* bytes, std::size_t count, float* to,
             bool past_caches = false) const;

 private:
  /// 1 through a number, as a sum.
  struct Inverse {
    float high = 0, low = 0;
  };
  static Inverse inverse_of(float value);
  float number(float byte) const;
  void write_eights(const std::uint8_t* bytes, std::size_t count, float* to,
                    bool past_caches) const;

  float mean_ = 0;
  Inverse of_255_, of_std_;
  bool exact_ = false;
};

}  // namespace penstock
