#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/transforms/boxes/boxes.h"
#include "penstock/transforms/image/kept_picture.h"
#include "penstock/transforms/image/view.h"

namespace penstock {
namespace {

struct Point {
  double x = 0, y = 0;
};

/// Where the points of a picture come to in the tensor.
class Moves {
 public:
  Moves(const Image& image, const View& view,
        const std::vector<PixelChange>& changes)
      : width_(image.width), height_(image.height), view_(view) {
    for (const PixelChange& change : changes)
      if (moves(change.change)) changes_.push_back(change);
  }

  Point of(Point at) const {
    at = {along(view_.columns, at.x - view_.crop.left),
          along(view_.rows, at.y - view_.crop.top)};
    if (view_.flipped) at.x = width_ - at.x;
    for (const PixelChange& change : changes_) at = changed(change, at);
    return at;
  }

 private:
  static double along(const ResizeAxis& axis, double at) {
    return at * axis.out / axis.size - axis.first;
  }
  /// The matrix says which point is shown where; its inverse is wanted.
  Point changed(const PixelChange& change, Point at) const {
    if (change.change == Change::flip_vertically) return {at.x, height_ - at.y};
    const auto [a, b, c, d, e, f] = changes::matrix_of(change, width_, height_);
    const double area = a * e - b * d;
    const double x = at.x - c, y = at.y - f;
    return {(e * x - b * y) / area, (a * y - d * x) / area};
  }

  const int width_, height_;
  const View view_;
  std::vector<PixelChange> changes_;
};

class BoxesFinisher final : public FieldFinisher {
 public:
  BoxesFinisher(const Boxes& boxes, bool train)
      : boxes_(boxes), train_(train) {}

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::int32_t size[2];
      std::memcpy(size, rows[r].tensors, sizeof(size));
      found_.resize(static_cast<std::size_t>(boxes_.most));
      std::memcpy(found_.data(), rows[r].tensors + sizeof(size),
                  found_.size() * sizeof(StoredBox));
      const Moves moves = moves_of(rows[r], key, size[0], size[1]);
      if (boxes_.format == BoxFormat::points)
        write_points(moves, reinterpret_cast<float*>(to[0].row(r)));
      else
        write_boxes(moves, reinterpret_cast<float*>(to[0].row(r)),
                    reinterpret_cast<std::int64_t*>(to[1].row(r)));
    }
  }

 private:
  /// Also shrinks the boxes where the pictures are kept smaller.
  Moves moves_of(const StoredRow& row, const DrawKey& key, int width,
                 int height) {
    const Image& image = boxes_.image;
    const auto [w, h] = image.store_decoded
                            ? kept_size(width, height, image.max_side)
                            : std::pair(width, height);
    if (w != width || h != height)
      for (StoredBox& box : found_)
        for (std::size_t i = 0; i < 4; ++i)
          if (!(boxes_.format == BoxFormat::points && i >= 2))
            box.numbers[i] *=
                i % 2 == 0 ? static_cast<float>(w) / static_cast<float>(width)
                           : static_cast<float>(h) / static_cast<float>(height);
    changes_.clear();
    if (train_)
      draw_changes(image.augments, image.width, image.height,
                   key.random(row, kAugmentDraws), changes_);
    return {image,
            view_of(image, train_ ? image.train : image.val, w, h,
                    key.random(row, kCropDraws), key.random(row, kFlipDraws),
                    train_),
            changes_};
  }

  void write_points(const Moves& moves, float* to) const {
    for (const StoredBox& box : found_) {
      Point at;
      bool there = box.numbers[2] != 0;
      if (there) {
        at = moves.of({box.numbers[0], box.numbers[1]});
        there = at.x >= 0 && at.x <= boxes_.image.width && at.y >= 0 &&
                at.y <= boxes_.image.height;
      }
      *to++ = static_cast<float>(there ? at.x : 0);
      *to++ = static_cast<float>(there ? at.y : 0);
      *to++ = there ? 1.0F : 0.0F;
    }
  }

  void write_boxes(const Moves& moves, float* to, std::int64_t* classes) const {
    const double width = boxes_.image.width, height = boxes_.image.height;
    for (const StoredBox& box : found_) {
      constexpr double kFar = std::numeric_limits<double>::infinity();
      double left = kFar, top = kFar, right = -kFar, bottom = -kFar;
      for (int corner = 0; corner < 4; ++corner) {
        const Point at = moves.of({box.numbers[corner % 2 == 0 ? 0 : 2],
                                   box.numbers[corner < 2 ? 1 : 3]});
        left = std::min(left, at.x);
        right = std::max(right, at.x);
        top = std::min(top, at.y);
        bottom = std::max(bottom, at.y);
      }
      left = std::clamp(left, 0.0, width);
      right = std::clamp(right, 0.0, width);
      top = std::clamp(top, 0.0, height);
      bottom = std::clamp(bottom, 0.0, height);
      const bool there = box.of_class >= 0 && right > left && bottom > top;
      *classes++ = there ? box.of_class : -1;
      for (double number : {left, top, right, bottom})
        *to++ = there ? static_cast<float>(number) : 0.0F;
    }
  }

  const Boxes boxes_;
  const bool train_;
  std::vector<StoredBox> found_;
  std::vector<PixelChange> changes_;
};

}  // namespace

std::unique_ptr<FieldFinisher> make_boxes_finisher(const Boxes& boxes,
                                                   bool train) {
  return std::make_unique<BoxesFinisher>(boxes, train);
}

}  // namespace penstock
