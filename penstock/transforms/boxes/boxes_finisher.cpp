#include <cstring>
#include <optional>

#include "penstock/transforms/boxes/boxes.h"
#include "penstock/transforms/boxes/moves.h"
#include "penstock/transforms/image/kept_picture.h"
#include "penstock/transforms/image/view.h"

namespace penstock {
namespace {

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
    return {image.width, image.height,
            view_of(image, train_ ? image.train : image.val, w, h,
                    key.random(row, kCropDraws), key.random(row, kFlipDraws),
                    train_),
            changes_};
  }

  void write_points(const Moves& moves, float* to) const {
    for (const StoredBox& box : found_) {
      const std::optional<Point> at =
          box.numbers[2] == 0 ? std::nullopt
                              : moves.of(Point{box.numbers[0], box.numbers[1]});
      *to++ = static_cast<float>(at ? at->x : 0);
      *to++ = static_cast<float>(at ? at->y : 0);
      *to++ = at ? 1.0F : 0.0F;
    }
  }

  void write_boxes(const Moves& moves, float* to, std::int64_t* classes) const {
    for (const StoredBox& box : found_) {
      const Edges moved = moves.of(box.numbers);
      const auto [left, top, right, bottom] = moved;
      const bool there = box.of_class >= 0 && right > left && bottom > top;
      *classes++ = there ? box.of_class : -1;
      for (float number : moved) *to++ = there ? number : 0.0F;
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
