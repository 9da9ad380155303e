#include "penstock/transforms/boxes/moves.h"

#include <algorithm>

namespace penstock {
namespace {

double along(const ResizeAxis& axis, double at) {
  return at * axis.out / axis.size - axis.first;
}

std::array<Point, 4> corners_of(const Edges& box) {
  const auto [left, top, right, bottom] = box;
  return {{{left, top}, {right, top}, {right, bottom}, {left, bottom}}};
}

}  // namespace

Moves::Moves(int width, int height, const View& view,
             const std::vector<PixelChange>& changes)
    : width_(width), height_(height), view_(view) {
  for (const PixelChange& change : changes)
    if (moves(change.change)) changes_.push_back(change);
}

// A box stays parallel to the axes: after each change it is the smallest one
// around its four moved corners, so a turned box grows.
Edges Moves::of(Edges box) const {
  std::array<Point, 4> corners = corners_of(box);
  for (Point& corner : corners) {
    corner.x = std::clamp(corner.x - view_.crop.left, 0.0,
                          static_cast<double>(view_.crop.width));
    corner.y = std::clamp(corner.y - view_.crop.top, 0.0,
                          static_cast<double>(view_.crop.height));
    corner = framed(corner);
    if (view_.flipped) corner.x = width_ - corner.x;
  }
  box = around(corners);
  for (const PixelChange& change : changes_) {
    corners = corners_of(box);
    for (Point& corner : corners) corner = changed(change, corner);
    box = around(corners);
  }
  return box;
}

std::optional<Point> Moves::of(Point at) const {
  at = framed({at.x - view_.crop.left, at.y - view_.crop.top});
  if (view_.flipped) at.x = width_ - at.x;
  if (!holds(at)) return std::nullopt;
  for (const PixelChange& change : changes_) {
    at = changed(change, at);
    if (!holds(at)) return std::nullopt;
  }
  return at;
}

Point Moves::framed(Point at) const {
  return {along(view_.columns, at.x), along(view_.rows, at.y)};
}

/// The matrix says which point is shown where; its inverse is wanted.
Point Moves::changed(const PixelChange& change, Point at) const {
  if (change.change == Change::flip_vertically) return {at.x, height_ - at.y};
  const auto [a, b, c, d, e, f] = changes::matrix_of(
      change, static_cast<int>(width_), static_cast<int>(height_));
  const double area = a * e - b * d;
  const double x = at.x - c, y = at.y - f;
  return {(e * x - b * y) / area, (a * y - d * x) / area};
}

bool Moves::holds(Point at) const {
  return at.x >= 0 && at.x <= width_ && at.y >= 0 && at.y <= height_;
}

Edges Moves::around(const std::array<Point, 4>& corners) const {
  const auto [left, right] = std::ranges::minmax(corners, {}, &Point::x);
  const auto [top, bottom] = std::ranges::minmax(corners, {}, &Point::y);
  return {static_cast<float>(std::clamp(left.x, 0.0, width_)),
          static_cast<float>(std::clamp(top.y, 0.0, height_)),
          static_cast<float>(std::clamp(right.x, 0.0, width_)),
          static_cast<float>(std::clamp(bottom.y, 0.0, height_))};
}

}  // namespace penstock
