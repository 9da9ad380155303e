#pragma once

// The loops of lanes.h over PENSTOCK_LANES frames at a time, for a file that is
// compiled for one kind of processor. No inline function of another header is
// used here, since the linker could give it to code for every processor.
#include "penstock/transforms/audio/lanes.h"

namespace penstock::lanes {
namespace {

constexpr std::size_t kLanes = PENSTOCK_LANES;
using V = double __attribute__((vector_size(8 * PENSTOCK_LANES)));
using F = float __attribute__((vector_size(4 * PENSTOCK_LANES)));
using I = std::int32_t __attribute__((vector_size(4 * PENSTOCK_LANES)));

struct Complex {
  V re, im;
};

#define PENSTOCK_INLINE [[gnu::always_inline]] static inline

PENSTOCK_INLINE void store(const F& from, float* to, std::size_t count) {
  if (count == kLanes)
    __builtin_memcpy(to, &from, sizeof(F));
  else
    __builtin_memcpy(to, &from, 4 * count);
}

/// The first halves of both, by turns, and the second ones.
PENSTOCK_INLINE void interleave(const F& a, const F& b, F& low, F& high) {
#if PENSTOCK_LANES == 2
  low = __builtin_shufflevector(a, b, 0, 2);
  high = __builtin_shufflevector(a, b, 1, 3);
#elif PENSTOCK_LANES == 4
  low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

/// Numbers from `at` on of each frame: to[i] has number at + i of all frames.
PENSTOCK_INLINE void turn_around(const float* const* begins, std::size_t at,
                                 F* to) {
  constexpr std::size_t kHalf = kLanes / 2;
  F from[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    __builtin_memcpy(&to[lane], begins[lane] + at, sizeof(F));
  for (std::size_t step = kLanes; step > 1; step /= 2) {
    for (std::size_t i = 0; i < kLanes; ++i) from[i] = to[i];
    for (std::size_t i = 0; i < kHalf; ++i)
      interleave(from[i], from[i + kHalf], to[2 * i], to[2 * i + 1]);
  }
}

/// a * (cos, sin).
PENSTOCK_INLINE void turn(const Complex& a, const double* by, Complex& to) {
  const double c = by[0], s = by[1];
  to = {a.re * c - a.im * s, a.re * s + a.im * c};
}

PENSTOCK_INLINE void butterfly2(const Complex* a, Complex* b) {
  b[0] = {a[0].re + a[1].re, a[0].im + a[1].im};
  b[1] = {a[0].re - a[1].re, a[0].im - a[1].im};
}
PENSTOCK_INLINE void butterfly3(const Complex* a, Complex* b) {
  constexpr double kSin = 0.866025403784438646763723;
  const Complex sum = {a[1].re + a[2].re, a[1].im + a[2].im};
  const Complex mid = {a[0].re - 0.5 * sum.re, a[0].im - 0.5 * sum.im};
  const Complex side = {kSin * (a[1].im - a[2].im), kSin * (a[2].re - a[1].re)};
  b[0] = {a[0].re + sum.re, a[0].im + sum.im};
  b[1] = {mid.re + side.re, mid.im + side.im};
  b[2] = {mid.re - side.re, mid.im - side.im};
}
PENSTOCK_INLINE void butterfly4(const Complex* a, Complex* b) {
  const Complex even = {a[0].re + a[2].re, a[0].im + a[2].im};
  const Complex odd = {a[0].re - a[2].re, a[0].im - a[2].im};
  const Complex sum = {a[1].re + a[3].re, a[1].im + a[3].im};
  const Complex side = {a[1].im - a[3].im, a[3].re - a[1].re};
  b[0] = {even.re + sum.re, even.im + sum.im};
  b[1] = {odd.re + side.re, odd.im + side.im};
  b[2] = {even.re - sum.re, even.im - sum.im};
  b[3] = {odd.re - side.re, odd.im - side.im};
}
PENSTOCK_INLINE void butterfly5(const Complex* a, Complex* b) {
  constexpr double kCos1 = 0.309016994374947424102293;
  constexpr double kCos2 = -0.809016994374947424102293;
  constexpr double kSin1 = 0.951056516295153572116439;
  constexpr double kSin2 = 0.587785252292473129168705;
  const Complex s1 = {a[1].re + a[4].re, a[1].im + a[4].im};
  const Complex s2 = {a[2].re + a[3].re, a[2].im + a[3].im};
  const Complex d1 = {a[1].re - a[4].re, a[1].im - a[4].im};
  const Complex d2 = {a[2].re - a[3].re, a[2].im - a[3].im};
  const Complex m1 = {a[0].re + kCos1 * s1.re + kCos2 * s2.re,
                      a[0].im + kCos1 * s1.im + kCos2 * s2.im};
  const Complex m2 = {a[0].re + kCos2 * s1.re + kCos1 * s2.re,
                      a[0].im + kCos2 * s1.im + kCos1 * s2.im};
  const Complex n1 = {kSin1 * d1.im + kSin2 * d2.im,
                      -(kSin1 * d1.re + kSin2 * d2.re)};
  const Complex n2 = {kSin2 * d1.im - kSin1 * d2.im,
                      -(kSin2 * d1.re - kSin1 * d2.re)};
  b[0] = {a[0].re + s1.re + s2.re, a[0].im + s1.im + s2.im};
  b[1] = {m1.re + n1.re, m1.im + n1.im};
  b[2] = {m2.re + n2.re, m2.im + n2.im};
  b[3] = {m2.re - n2.re, m2.im - n2.im};
  b[4] = {m1.re - n1.re, m1.im - n1.im};
}

template <std::size_t kRadix, class Butterfly>
PENSTOCK_INLINE void step_of(const FftStep& step, const Complex* from,
                             Complex* to, Butterfly butterfly) {
  Complex a[kRadix], b[kRadix];
  for (std::size_t q = 0; q < step.size; ++q) {
    const double* by = step.twiddles + 2 * (kRadix - 1) * q;
    for (std::size_t k = 0; k < step.stride; ++k) {
      for (std::size_t j = 0; j < kRadix; ++j)
        a[j] = from[k + step.stride * (q + step.size * j)];
      butterfly(a, b);
      Complex* out = to + k + step.stride * kRadix * q;
      out[0] = b[0];
      for (std::size_t r = 1; r < kRadix; ++r)
        turn(b[r], by + 2 * (r - 1), out[step.stride * r]);
    }
  }
}

/// Of a prime that has no code of its own.
static void step_of_any(const FftStep& step, const Complex* from, Complex* to) {
  const std::size_t radix = step.radix;
  for (std::size_t q = 0; q < step.size; ++q)
    for (std::size_t k = 0; k < step.stride; ++k)
      for (std::size_t r = 0; r < radix; ++r) {
        Complex sum = from[k + step.stride * q];
        for (std::size_t j = 1; j < radix; ++j) {
          Complex part;
          turn(from[k + step.stride * (q + step.size * j)],
               step.roots + 2 * (j * r % radix), part);
          sum = {sum.re + part.re, sum.im + part.im};
        }
        Complex* out = to + k + step.stride * (radix * q + r);
        if (r == 0)
          *out = sum;
        else
          turn(sum, step.twiddles + 2 * ((radix - 1) * q + r - 1), *out);
      }
}

/// The result is in the buffer that is returned.
static Complex* transform(const FftStep* steps, std::size_t count,
                          Complex* from, Complex* to) {
  for (std::size_t s = 0; s < count; ++s) {
    const FftStep& step = steps[s];
    if (step.radix == 2)
      step_of<2>(
          step, from, to,
          [](const Complex* a, Complex* b)
              __attribute__((always_inline)) { butterfly2(a, b); });
    else if (step.radix == 3)
      step_of<3>(
          step, from, to,
          [](const Complex* a, Complex* b)
              __attribute__((always_inline)) { butterfly3(a, b); });
    else if (step.radix == 4)
      step_of<4>(
          step, from, to,
          [](const Complex* a, Complex* b)
              __attribute__((always_inline)) { butterfly4(a, b); });
    else if (step.radix == 5)
      step_of<5>(
          step, from, to,
          [](const Complex* a, Complex* b)
              __attribute__((always_inline)) { butterfly5(a, b); });
    else
      step_of_any(step, from, to);
    Complex* swapped = from;
    from = to;
    to = swapped;
  }
  return from;
}

/// Natural logarithm of positive normal numbers: with m in [sqrt(1/2),
/// sqrt(2)), x = 2^e m, and Cephes' polynomial for ln(1 + (m - 1)).
PENSTOCK_INLINE void logarithm(F& x) {
  I bits;
  __builtin_memcpy(&bits, &x, sizeof(F));
  const I shifted = bits - 0x3F3504F3;  // sqrt(1/2)
  const I exponent = shifted >> 23;
  const I mantissa = bits - (exponent << 23);
  F m;
  __builtin_memcpy(&m, &mantissa, sizeof(F));
  const F e = __builtin_convertvector(exponent, F);
  m = m - 1.0F;
  const F z = m * m;
  F y = m * 7.0376836292e-2F - 1.1514610310e-1F;
  y = y * m + 1.1676998740e-1F;
  y = y * m - 1.2420140846e-1F;
  y = y * m + 1.4249322787e-1F;
  y = y * m - 1.6668057665e-1F;
  y = y * m + 2.0000714765e-1F;
  y = y * m - 2.4999993993e-1F;
  y = y * m + 3.3333331174e-1F;
  y = y * m * z;
  y = y + e * -2.12194440e-4F;
  y = y - 0.5F * z;
  x = m + y + e * 0.693359375F;
}

PENSTOCK_INLINE void take_log(int log, F& x) {
  if (log == 1) {
    const F least = F{} + 1e-10F;
    x = x > least ? x : least;
    logarithm(x);
    x = x * 4.342944819032518F;  // 10 / ln 10
  } else if (log == 2) {
    x = x + 1e-6F;
    logarithm(x);
  }
}

/// Windowed frames, a lane each, as the transform takes them. Behind a frame
/// are others, or as many zeros.
PENSTOCK_INLINE void load_frames(const Spectrogram& of, const float* padded,
                                 std::size_t count, Complex* to) {
  const float* begins[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    begins[lane] = padded + of.hop * (lane < count ? lane : count - 1);
  for (std::size_t first = 0; first < of.n_fft; first += kLanes) {
    F numbers[kLanes];
    turn_around(begins, first, numbers);
    const std::size_t end =
        of.n_fft - first < kLanes ? of.n_fft - first : kLanes;
    for (std::size_t i = 0; i < end; ++i) {
      const std::size_t at = first + i;
      const V x = __builtin_convertvector(numbers[i], V) * of.window[at];
      if (!of.packed)
        to[at] = {x, V{}};
      else if (at % 2 == 0)
        to[at / 2].re = x;
      else
        to[at / 2].im = x;
    }
  }
}

PENSTOCK_INLINE void root(V& x) {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    x[lane] = __builtin_sqrt(x[lane]);
}

/// |even + odd, turned|^2
PENSTOCK_INLINE void power_of(const Complex& even, const Complex& odd,
                              const double* by, V& to) {
  Complex turned;
  turn(odd, by, turned);
  const V re = even.re + turned.re, im = even.im + turned.im;
  to = re * re + im * im;
}

/// |X|^2 of the bins from 0 to n_fft / 2.
PENSTOCK_INLINE void powers(const Spectrogram& of, const Complex* z, V* to) {
  const std::size_t bins = of.n_fft / 2 + 1;
  if (!of.packed) {
    for (std::size_t k = 0; k < bins; ++k)
      to[k] = z[k].re * z[k].re + z[k].im * z[k].im;
    return;
  }
  const std::size_t half = of.n_fft / 2;
  for (std::size_t k = 0; k <= half / 2; ++k) {
    const Complex& a = z[k];
    const Complex& b = z[k == 0 ? 0 : half - k];
    // Of the real numbers at even and at odd places; those of the bin as far
    // from the other end are their conjugates.
    const Complex even = {a.re + b.re, a.im - b.im};
    const Complex odd = {a.im + b.im, b.re - a.re};
    power_of(even, odd, of.unpack + 2 * k, to[k]);
    power_of({even.re, -even.im}, {odd.re, -odd.im}, of.unpack + 2 * (half - k),
             to[half - k]);
  }
}

static void spectrogram(const Spectrogram& of, const float* padded,
                        std::size_t frames, double* scratch, float* to) {
  const std::size_t points = of.packed ? of.n_fft / 2 : of.n_fft;
  auto* z = reinterpret_cast<Complex*>(scratch);
  Complex* other = z + points;
  V* power = reinterpret_cast<V*>(other + points);
  for (std::size_t f = 0; f < frames; f += kLanes) {
    const std::size_t count = frames - f < kLanes ? frames - f : kLanes;
    load_frames(of, padded + f * of.hop, count, z);
    powers(of, transform(of.steps, of.step_count, z, other), power);
    if (!of.squared)
      for (std::size_t k = 0; k <= of.n_fft / 2; ++k) root(power[k]);
    const double* weight = of.weights;
    for (std::size_t band = 0; band < of.bands; ++band) {
      const V* bin = power + of.firsts[band];
      V sum = V{};
      for (std::int32_t k = 0; k < of.counts[band]; ++k)
        sum = sum + bin[k] * *weight++;
      F value = __builtin_convertvector(sum, F);
      take_log(of.log, value);
      store(value, to + band * frames + f, count);
    }
  }
}

static void product(const float* matrix, const float* from, std::size_t rows,
                    std::size_t inner, std::size_t columns, float* to) {
  for (std::size_t c = 0; c < columns; c += kLanes) {
    const std::size_t count = columns - c < kLanes ? columns - c : kLanes;
    for (std::size_t r = 0; r < rows; ++r) {
      V sum = V{};
      for (std::size_t i = 0; i < inner; ++i) {
        F x = F{};
        const float* at = from + i * columns + c;
        if (count == kLanes)
          __builtin_memcpy(&x, at, sizeof(F));
        else
          __builtin_memcpy(&x, at, 4 * count);
        sum = sum + __builtin_convertvector(x, V) *
                        static_cast<double>(matrix[r * inner + i]);
      }
      store(__builtin_convertvector(sum, F), to + r * columns + c, count);
    }
  }
}

static void filter(const float* from, const float* kernels,
                   const std::int32_t* firsts, std::size_t taps,
                   std::size_t phases, std::int64_t step, std::int64_t first,
                   std::size_t count, float* to) {
  auto phase = static_cast<std::size_t>(first) % phases;
  std::int64_t round =
      static_cast<std::int64_t>(static_cast<std::size_t>(first) / phases) *
      step;
  // Always eight sums, so that all processors add in the same order.
  using Eight = float __attribute__((vector_size(32)));
  for (std::size_t i = 0; i < count; ++i) {
    const float* x = from + round + firsts[phase];
    const float* kernel = kernels + phase * taps;
    Eight sum = Eight{};
    for (std::size_t t = 0; t < taps; t += 8) {
      Eight a, b;
      __builtin_memcpy(&a, x + t, 32);
      __builtin_memcpy(&b, kernel + t, 32);
      sum = sum + a * b;
    }
    to[i] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
            ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    if (++phase == phases) {
      phase = 0;
      round += step;
    }
  }
}

static std::size_t scratch_of(std::size_t n_fft) {
  return kLanes * (2 * 2 * n_fft + n_fft / 2 + 1);
}

constexpr Code kCode{.width = kLanes,
                     .scratch = scratch_of,
                     .spectrogram = spectrogram,
                     .product = product,
                     .filter = filter};

#undef PENSTOCK_INLINE

}  // namespace
}  // namespace penstock::lanes
