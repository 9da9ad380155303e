#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <utility>

#include "penstock/transforms/image/augment/change.h"

// Image.transform(AFFINE) and Image.rotate() of Pillow (Geometry.c), with the
// matrices that torchvision gives them. Nearest pixels are found in fixed point
// of 16 bits, others in double: the steps must be the same ones.

namespace penstock::changes {
namespace {

using Matrix = std::array<double, 6>;

double radians(double degrees) { return degrees * (std::numbers::pi / 180.0); }

/// Python's round(value, 15): the nearest number of 15 decimals.
double rounded(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.15f", value);
  return std::strtod(text, nullptr);
}

Matrix rotation(double degrees, int width, int height) {
  const double cx = width / 2.0, cy = height / 2.0;
  const double angle =
      -radians(std::fmod(std::fmod(degrees, 360.0) + 360.0, 360.0));
  const double cosine = rounded(std::cos(angle));
  const double sine = rounded(std::sin(angle));
  const double back = rounded(-std::sin(angle));
  Matrix of = {cosine, sine, 0, back, cosine, 0};
  of[2] = (of[0] * -cx + of[1] * -cy) + cx;
  of[5] = (of[3] * -cx + of[4] * -cy) + cy;
  return of;
}

/// The inverse of: shear, scale and turn about the centre, then move.
/// With C the move to the centre, T the translation and R the rotation with
/// shears, the picture is moved by M = T C R C^-1, and this is M^-1 = C R^-1
/// C^-1 T^-1: for each pixel of the output, where it comes from. R without its
/// scale has the determinant 1, so its inverse only exchanges and negates a, b,
/// c, d.
Matrix affine(const std::array<double, 7>& numbers, int width, int height) {
  const auto& [degrees, right, down, scale, shear_x, shear_y, corner] = numbers;
  const double cx = corner != 0 ? 0.0 : width * 0.5;
  const double cy = corner != 0 ? 0.0 : height * 0.5;
  const double turn = radians(degrees);
  const double sx = radians(shear_x), sy = radians(shear_y);
  const double a = std::cos(turn - sy) / std::cos(sy);
  const double b = -(a * std::tan(sx) + std::sin(turn));
  const double c = std::sin(turn - sy) / std::cos(sy);
  const double d = std::cos(turn) - c * std::tan(sx);
  Matrix of = {d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0};
  const double x = cx + right, y = cy + down;
  of[2] += cx - of[0] * x - of[1] * y;
  of[5] += cy - of[3] * x - of[4] * y;
  return of;
}

int floor_of(double value) {
  return value >= 0 ? static_cast<int>(value)
                    : static_cast<int>(std::floor(value));
}
/// Below 0 any place outside.
int place_of(double value) { return value < 0 ? -1 : static_cast<int>(value); }
int fixed(double value) { return floor_of(value * 65536.0 + 0.5); }

template <std::size_t kBytes>
class Warp {
 public:
  Warp(const PixelChange& change, const Pixels& from, const Matrix& matrix,
       Pixels& to)
      : change_(change), from_(from), m_(matrix), to_(to) {}

  void run() {
    switch (change_.interpolation) {
      case Interpolation::bilinear:
        return each([this](double x, double y, std::uint8_t* out) {
          return bilinear(x, y, out);
        });
      case Interpolation::bicubic:
        return each([this](double x, double y, std::uint8_t* out) {
          return bicubic(x, y, out);
        });
      default:
        break;
    }
    if (m_[1] == 0 && m_[3] == 0)
      scaled();
    else
      nearest();
  }

 private:
  void fill(std::uint8_t* out) const {
    std::memcpy(out, change_.fill.data(), kBytes);
  }
  const std::uint8_t* pixel(int x, int y) const {
    return from_.row(y) + static_cast<std::size_t>(x) * kBytes;
  }
  bool holds(int x, int y) const {
    return x >= 0 && x < from_.width && y >= 0 && y < from_.height;
  }
  void put(int x, int y, std::uint8_t* out) const {
    if (holds(x, y))
      std::memcpy(out, pixel(x, y), kBytes);
    else
      fill(out);
  }

  // Steps of 1/65536 pixel are added up in integers, as Geometry.c does: the
  // error that grows along a row is part of the result.
  void nearest() {
    const int right_x = fixed(m_[0]), right_y = fixed(m_[3]);
    const int down_x = fixed(m_[1]), down_y = fixed(m_[4]);
    int row_x = fixed(m_[2] + m_[0] * 0.5 + m_[1] * 0.5);
    int row_y = fixed(m_[5] + m_[3] * 0.5 + m_[4] * 0.5);
    for (int y = 0; y < to_.height; ++y, row_x += down_x, row_y += down_y) {
      std::uint8_t* out = to_.row(y);
      int at_x = row_x, at_y = row_y;
      for (int x = 0; x < to_.width; ++x, out += kBytes) {
        put(at_x >> 16, at_y >> 16, out);
        at_x += right_x;
        at_y += right_y;
      }
    }
  }

  // Without a turn Pillow adds up in double.
  void scaled() {
    double at_y = m_[5] + m_[4] * 0.5;
    for (int y = 0; y < to_.height; ++y, at_y += m_[4]) {
      std::uint8_t* out = to_.row(y);
      double at_x = m_[2] + m_[0] * 0.5;
      for (int x = 0; x < to_.width; ++x, at_x += m_[0], out += kBytes)
        put(place_of(at_x), place_of(at_y), out);
    }
  }

  template <class Sample>
  void each(Sample sample) {
    for (int y = 0; y < to_.height; ++y) {
      std::uint8_t* out = to_.row(y);
      for (int x = 0; x < to_.width; ++x, out += kBytes) {
        const double in_x = x + 0.5, in_y = y + 0.5;
        const double at_x = m_[0] * in_x + m_[1] * in_y + m_[2];
        const double at_y = m_[3] * in_x + m_[4] * in_y + m_[5];
        const bool inside = at_x >= 0.0 && at_x < from_.width && at_y >= 0.0 &&
                            at_y < from_.height;
        if (!inside || !sample(at_x - 0.5, at_y - 0.5, out)) fill(out);
      }
    }
  }
  int column(int x) const { return std::clamp(x, 0, from_.width - 1); }
  int line(int y) const { return std::clamp(y, 0, from_.height - 1); }

  bool bilinear(double at_x, double at_y, std::uint8_t* out) const {
    const int x = floor_of(at_x), y = floor_of(at_y);
    const double dx = at_x - x, dy = at_y - y;
    auto between = [](double a, double b, double d) { return a + (b - a) * d; };
    auto along = [&](int row, std::size_t c) {
      return between(pixel(column(x), row)[c], pixel(column(x + 1), row)[c],
                     dx);
    };
    const bool below = y + 1 >= 0 && y + 1 < from_.height;
    for (std::size_t c = 0; c < kBytes; ++c) {
      const double upper = along(line(y), c);
      const double lower = below ? along(y + 1, c) : upper;
      out[c] = static_cast<std::uint8_t>(between(upper, lower, dy));
    }
    return true;
  }

  // Keys' cubic with a = -1, where resize() takes -1/2: Geometry.c and
  // Resample.c of Pillow differ.
  static double cubic(const std::array<double, 4>& v, double d) {
    const double p1 = v[1];
    const double p2 = -v[0] + v[2];
    const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    const double p4 = -v[0] + v[1] - v[2] + v[3];
    return p1 + d * (p2 + d * (p3 + d * p4));
  }
  bool bicubic(double at_x, double at_y, std::uint8_t* out) const {
    const int x = floor_of(at_x) - 1, y = floor_of(at_y) - 1;
    const double dx = at_x - (x + 1), dy = at_y - (y + 1);
    for (std::size_t c = 0; c < kBytes; ++c) {
      std::array<double, 4> rows;
      for (int r = 0; r < 4; ++r) {
        const bool there = r == 0 || (y + r >= 0 && y + r < from_.height);
        std::array<double, 4> v;
        for (int i = 0; i < 4; ++i)
          v[static_cast<std::size_t>(i)] = pixel(column(x + i), line(y + r))[c];
        rows[static_cast<std::size_t>(r)] =
            there ? cubic(v, dx) : rows[static_cast<std::size_t>(r - 1)];
      }
      const double value = cubic(rows, dy);
      out[c] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
    }
    return true;
  }

  const PixelChange& change_;
  const Pixels& from_;
  const Matrix m_;
  Pixels& to_;
};

}  // namespace

Matrix matrix_of(const PixelChange& change, int width, int height) {
  return change.change == Change::rotate
             ? rotation(change.numbers[0], width, height)
             : affine(change.numbers, width, height);
}

void warp(const PixelChange& change, Pixels& pixels, Pixels& other) {
  const Matrix matrix = matrix_of(change, pixels.width, pixels.height);
  other.reshape(pixels.width, pixels.height, pixels.mode);
  if (pixels.mode == PictureMode::rgb)
    Warp<3>(change, pixels, matrix, other).run();
  else
    Warp<1>(change, pixels, matrix, other).run();
  std::swap(pixels, other);
}

}  // namespace penstock::changes
