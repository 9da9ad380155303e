#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::lanes {

/// One step of a Fourier transform: `radix` parts of `size` numbers are
/// combined, `stride` transforms side by side. Stockham's order, so that
/// nothing is reordered afterwards.
struct FftStep {
  std::size_t radix, size, stride;
  /// For each of `size`: radix - 1 factors, each (cos, sin).
  const double* twiddles;
  const double* roots;  ///< of a radix that has no code of its own: (cos, sin)
};

/// The powers (or magnitudes) of frames become mel bands. All in float64: the
/// quiet bands of a loud frame are then as exact as the loud ones.
struct Spectrogram {
  // Of a frame.
  std::size_t n_fft, hop;
  const double* window;  ///< n_fft; half of it where `packed`
  const FftStep* steps;
  std::size_t step_count;
  bool packed;  ///< two real numbers are one complex one: n_fft is even
  const double* unpack;  ///< for each bin (cos, sin) of what separates them
  bool squared;
  // Of a band: `counts` weights, which begin at bin `firsts`.
  std::size_t bands;
  const std::int32_t* firsts;
  const std::int32_t* counts;
  const double* weights;  ///< one after the other
  int log;  ///< 0: none, 1: 10 log10 of 1e-10 at least, 2: ln(x + 1e-6)
};

/// What is the same for every processor, in the words that it has. All give the
/// same numbers: each lane is a frame by itself, and nothing is contracted.
struct Code {
  std::size_t width;  ///< frames at a time
  /// Doubles of scratch for frames of this length.
  std::size_t (*scratch)(std::size_t n_fft);
  /// `frames` of `padded` into `to` [bands, frames].
  void (*spectrogram)(const Spectrogram& of, const float* padded,
                      std::size_t frames, double* scratch, float* to);
  /// `to` [rows, columns] = matrix [rows, inner] x from [inner, columns].
  void (*product)(const float* matrix, const float* from, std::size_t rows,
                  std::size_t inner, std::size_t columns, float* to);
  /// to[i] = the sum over t < taps of kernel[i % phases] [t] * from[begin of i
  /// + t], where an output of phase p of round q begins at q * step +
  /// firsts[p]. `taps` is a multiple of 8.
  void (*filter)(const float* from, const float* kernels,
                 const std::int32_t* firsts, std::size_t taps,
                 std::size_t phases, std::int64_t step, std::int64_t first,
                 std::size_t count, float* to);
};

const Code& plain();
/// Null where this processor has no AVX2, and no AVX-512.
const Code* avx2();
const Code* avx512();
inline const Code& best() {
  if (avx512() != nullptr) return *avx512();
  return avx2() == nullptr ? plain() : *avx2();
}

}  // namespace penstock::lanes
