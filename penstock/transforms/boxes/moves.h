#pragma once

#include <array>
#include <optional>
#include <vector>

#include "penstock/transforms/image/augment/change.h"
#include "penstock/transforms/image/view.h"

namespace penstock {

struct Point {
  double x = 0, y = 0;
};

/// Left, top, right and bottom; float32 between the steps, as torchvision has
/// them, so that what is a line there is not a box of a hair's breadth here.
using Edges = std::array<float, 4>;

/// What a picture's crop, mirror and turns do to what is on it, step by step
/// as transforms of torchvision that follow each other.
class Moves {
 public:
  /// `width` and `height` of the tensor's picture.
  Moves(int width, int height, const View& view,
        const std::vector<PixelChange>& changes);

  /// The box around a box after each step, which cuts it off at the edges. Of
  /// what a step leaves nothing of a line or a point at the edge remains, and
  /// goes on, as in torchvision.
  Edges of(Edges box) const;
  /// Nothing, if a step moves it out of the picture.
  std::optional<Point> of(Point at) const;

 private:
  /// Of the whole picture, that is cropped and resized.
  Point framed(Point at) const;
  Point changed(const PixelChange& change, Point at) const;
  bool holds(Point at) const;
  Edges around(const std::array<Point, 4>& corners) const;

  const double width_, height_;
  const View view_;
  std::vector<PixelChange> changes_;
};

}  // namespace penstock
