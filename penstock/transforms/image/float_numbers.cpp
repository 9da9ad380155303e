#include "penstock/transforms/image/float_numbers.h"

#include <bit>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A quotient is a product with the inverse, which is the sum of two floats: one
// rounding then, as the division has, but for quotients that lie almost between
// two numbers. Each of the 256 is compared.

namespace penstock {

// 1 / value = high + low to about 48 bits. fma(x, high, x * low) then rounds
// once, up to an error of low's product that is far below half a unit of the
// last place.
FloatNumbers::Inverse FloatNumbers::inverse_of(float value) {
  const double inverse = 1.0 / value;
  const auto high = static_cast<float>(inverse);
  return {.high = high, .low = static_cast<float>(inverse - high)};
}

FloatNumbers::FloatNumbers(float mean, float std, const Table& table)
    : mean_(mean), of_255_(inverse_of(255.0F)), of_std_(inverse_of(std)) {
#if defined(__x86_64__)
  exact_ = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  for (std::size_t byte = 0; byte < table.size() && exact_; ++byte)
    exact_ = std::bit_cast<std::uint32_t>(number(static_cast<float>(byte))) ==
             std::bit_cast<std::uint32_t>(table[byte]);
}

float FloatNumbers::number(float byte) const {
  const float share = std::fma(byte, of_255_.high, byte * of_255_.low);
  const float above = share - mean_;
  return std::fma(above, of_std_.high, above * of_std_.low);
}

void FloatNumbers::write(const std::uint8_t* bytes, std::size_t count,
                         float* to, bool past_caches) const {
  const std::size_t eights = count / 8 * 8;
  const bool aligned = reinterpret_cast<std::uintptr_t>(to) % 32 == 0;
  write_eights(bytes, eights, to, past_caches && aligned);
  for (std::size_t at = eights; at < count; ++at)
    to[at] = number(static_cast<float>(bytes[at]));
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void FloatNumbers::write_eights(
    const std::uint8_t* bytes, std::size_t count, float* to,
    bool past_caches) const {
  const __m256 mean = _mm256_set1_ps(mean_),
               share_high = _mm256_set1_ps(of_255_.high),
               share_low = _mm256_set1_ps(of_255_.low),
               high = _mm256_set1_ps(of_std_.high),
               low = _mm256_set1_ps(of_std_.low);
  for (std::size_t at = 0; at < count; at += 8) {
    const __m256 eight = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + at))));
    const __m256 share =
        _mm256_fmadd_ps(eight, share_high, _mm256_mul_ps(eight, share_low));
    const __m256 above = _mm256_sub_ps(share, mean);
    const __m256 numbers =
        _mm256_fmadd_ps(above, high, _mm256_mul_ps(above, low));
    if (past_caches)
      _mm256_stream_ps(to + at, numbers);
    else
      _mm256_storeu_ps(to + at, numbers);
  }
}
#else
void FloatNumbers::write_eights(const std::uint8_t*, std::size_t, float*,
                                bool) const {}
#endif

}  // namespace penstock
