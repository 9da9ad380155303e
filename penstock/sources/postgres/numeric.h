#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::postgres {

/// A PostgreSQL numeric in its binary form: groups of four decimal digits, of
/// which the first stands for 10000^weight. Looks at the bytes of a field.
class Numeric {
 public:
  /// Nullopt when the bytes are no numeric.
  static std::optional<Numeric> from(std::string_view bytes);

  bool finite() const { return sign_ == kPositive || sign_ == kNegative; }
  /// The nearest float64; nullopt for a finite number beyond its range.
  std::optional<double> float64() const;
  /// The very number; nullopt when it has a fraction or does not fit.
  std::optional<std::int64_t> int64() const;
  /// In full: "-12.50", "NaN", "Infinity".
  std::string text() const;

 private:
  static constexpr std::uint16_t kPositive = 0x0000, kNegative = 0x4000,
                                 kNan = 0xC000, kInfinity = 0xD000,
                                 kMinusInfinity = 0xF000;

  std::uint16_t group(std::int64_t at) const;  // zero beyond both ends

  std::string_view groups_;  // two bytes each, most significant first
  std::int64_t weight_ = 0;
  std::uint16_t sign_ = kPositive;
  std::uint16_t scale_ = 0;  // digits to show behind the point
};

}  // namespace penstock::postgres
