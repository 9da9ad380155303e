#include "penstock/transforms/image/resize_taps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

// A pixel is a sum of its neighbours times weights, which are rounded to 22
// bits (or 14) behind the point: so the sums are integers, and any order of
// adding gives the same bytes. (Pillow's Resample.c says how the weights are
// made; the arithmetic in double must be the same step by step.)

namespace penstock {
namespace {

double triangle(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys (1981), "Cubic Convolution Interpolation for Digital Image Processing",
// with his a = -1/2.
double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

// sinc(x) sinc(x / 3), the window of Lanczos with three lobes on each side.
double lanczos(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

double support_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::bicubic:
      return 2.0;
    case Interpolation::lanczos:
      return 3.0;
    default:
      break;
  }
  return 1.0;
}

double scale_of(const ResizeAxis& axis) {
  return static_cast<double>(axis.end - axis.begin) / axis.out;
}

// Rounds half away from zero, as normalize_coeffs_8bpc() of Resample.c. 22 bits
// are 32 less 8 of a pixel and two spare ones: with negative lobes a partial
// sum may be below 0 or above 255, and it must not overflow.
std::int32_t fixed(double weight, double one) {
  return static_cast<std::int32_t>((weight < 0 ? -0.5 : 0.5) + weight * one);
}

/// The pixel under the middle of each; Pillow adds the steps up, so they must
/// be added up from the first one.
void make_nearest(const ResizeAxis& axis, ResizeTaps& taps) {
  const double step = scale_of(axis);
  double at = axis.begin + step * 0.5;
  for (int x = 0; x < axis.first + axis.count; ++x, at += step) {
    if (x < axis.first) continue;
    const auto i = static_cast<std::size_t>(x - axis.first);
    taps.first[i] = std::clamp(static_cast<int>(at), 0, axis.size - 1);
    taps.count[i] = 1;
    taps.weights[i] = 1 << taps.bits;
  }
}

// precompute_coeffs() of Resample.c. Output pixel i is centred at
//   centre = begin + (i + 0.5) * scale,    scale = (end - begin) / out
// and takes the pixels [centre - support, centre + support], both rounded, each
// with the weight f((x + 0.5 - centre) / max(scale, 1)). Where the picture
// shrinks, the filter is as many times wider, which is what removes aliasing.
// The weights are divided by their sum, since at the edges some are cut off.
template <double (*kWeight)(double)>
void make_filtered(double filter_support, const ResizeAxis& axis,
                   ResizeTaps& taps) {
  const double scale = scale_of(axis);
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  const double one = 1 << taps.bits;
  std::vector<double> exact(static_cast<std::size_t>(taps.most));
  for (int i = 0; i < axis.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double centre = axis.begin + (axis.first + i + 0.5) * scale;
    const int begin = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int end =
        std::min(static_cast<int>(centre + support + 0.5), axis.size);
    double sum = 0;
    for (int x = 0; x < end - begin; ++x) {
      const double weight = kWeight((x + begin - centre + 0.5) * inverse);
      exact[static_cast<std::size_t>(x)] = weight;
      sum += weight;
    }
    taps.first[at] = begin;
    taps.count[at] = end - begin;
    std::int32_t* to =
        taps.weights.data() + at * static_cast<std::size_t>(taps.most);
    for (int x = 0; x < end - begin; ++x) {
      double weight = exact[static_cast<std::size_t>(x)];
      if (sum != 0.0) weight /= sum;
      to[x] = fixed(weight, one);
    }
  }
}

}  // namespace

int ResizeTaps::begin() const {
  return *std::min_element(first.begin(), first.end());
}

int ResizeTaps::end() const {
  int end = 0;
  for (std::size_t at = 0; at < first.size(); ++at)
    end = std::max(end, first[at] + count[at]);
  return end;
}

void make_taps(Interpolation interpolation, const ResizeAxis& axis,
               ResizeTaps& taps) {
  const double support = support_of(interpolation);
  const double scale = std::max(scale_of(axis), 1.0);
  taps.size = axis.size;
  taps.out = axis.out;
  taps.most = interpolation == Interpolation::nearest
                  ? 1
                  : static_cast<int>(std::ceil(support * scale)) * 2 + 1;
  const auto count = static_cast<std::size_t>(axis.count);
  taps.first.assign(count, 0);
  taps.count.assign(count, 0);
  taps.weights.assign(count * static_cast<std::size_t>(taps.most), 0);
  switch (interpolation) {
    case Interpolation::nearest:
      return make_nearest(axis, taps);
    case Interpolation::bilinear:
      return make_filtered<triangle>(support, axis, taps);
    case Interpolation::bicubic:
      return make_filtered<cubic>(support, axis, taps);
    case Interpolation::lanczos:
      return make_filtered<lanczos>(support, axis, taps);
  }
}

}  // namespace penstock
