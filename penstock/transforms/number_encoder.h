#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "penstock/transforms/standardization.h"

namespace penstock {

/// Standardises the numbers of one element after the other and rounds them to
/// a tensor's dtype: float32 or float64; what becomes float16 is written as
/// float32.
class NumberEncoder {
 public:
  NumberEncoder(std::vector<Standardization> numbers, NumberPlace place,
                Dtype dtype)
      : numbers_(std::move(numbers)), place_(std::move(place)), dtype_(dtype) {}

  std::size_t numbers() const { return numbers_.size(); }
  std::size_t bytes() const { return numbers_.size() * size_of(dtype_); }
  /// Writes the numbers of one element. False when one of them does not fit
  /// the dtype: then `what_does_not_fit` says which and why.
  bool encode(const double* raw, std::byte* out) const {
    return dtype_ == Dtype::float64 ? encode_as<double>(raw, out)
                                    : encode_as<float>(raw, out);
  }
  RowFault what_does_not_fit(const double* raw, std::int64_t row) const;

 private:
  template <class Number>
  bool encode_as(const double* raw, std::byte* out) const;

  std::vector<Standardization> numbers_;
  NumberPlace place_;
  Dtype dtype_;
};

}  // namespace penstock
