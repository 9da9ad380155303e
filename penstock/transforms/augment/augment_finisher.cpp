#include <algorithm>
#include <bit>
#include <vector>

#include "penstock/transforms/augment/augment.h"

namespace penstock {
namespace {

bool is_masks_alone(const Augmentation& one) {
  const auto* masks = std::get_if<SpecAugment>(&one);
  return masks != nullptr && masks->time_warp == 0;
}

class AugmentFinisher final : public FieldFinisher {
 public:
  AugmentFinisher(const std::vector<Augmentation>& list, const Shape& row)
      : shape_(row),
        list_(list),
        augmenter_(list),
        masks_alone_(std::ranges::all_of(list, is_masks_alone)) {}

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    augmenter_.copy(rows, key, shape_, to[0]);
  }

  // Sums and sines of other augmentations would not have the same bits there.
  bool queues_on(MemoryKind) const override { return masks_alone_; }

  void queue(const QueuedRows& rows, Stream& stream) override {
    copy(rows, stream);
    for (std::size_t at = 0; at < list_.size(); ++at)
      mask(std::get<SpecAugment>(list_[at]), at, rows, stream);
  }

 private:
  /// Rows may be anywhere in the device's memory, and a crop names the address
  /// of each. Those that come one behind the other are one operation.
  void copy(const QueuedRows& rows, Stream& stream) {
    const TensorPlace& to = rows.to[0];
    for (std::size_t r = 0; r < rows.rows.size();) {
      windows_.clear();
      std::byte* const out = to.row(r);
      for (const std::byte* next = out;
           r < rows.rows.size() && to.row(r) == next; ++r, next += to.bytes)
        windows_.push_back(
            {.image = rows.rows[r].tensors, .height = 1, .width = elements()});
      stream.run(CropFlip{.out = out,
                          .height = 1,
                          .width = elements(),
                          .channels = sizeof(float),
                          .windows = windows_});
    }
  }

  void mask(const SpecAugment& of, std::size_t at, const QueuedRows& rows,
            Stream& stream) {
    const TensorPlace& to = rows.to[0];
    const auto lines = static_cast<std::int32_t>(shape_.lines());
    const auto times = static_cast<std::int32_t>(shape_.times);
    boxes_.clear();
    std::int64_t end = 0;
    for (std::size_t r = 0; r < rows.rows.size(); ++r) {
      const std::int64_t row =
          to.starts.empty() ? static_cast<std::int64_t>(r) : to.starts[r];
      end = std::max(end, row + 1);
      Random random = draws_of(rows.key, rows.rows[r], at);
      auto add = [&](std::int64_t top, std::int64_t left, std::int64_t height,
                     std::int64_t width) {
        if (height > 0 && width > 0)
          boxes_.push_back({.row = row,
                            .top = static_cast<std::int32_t>(top),
                            .left = static_cast<std::int32_t>(left),
                            .height = static_cast<std::int32_t>(height),
                            .width = static_cast<std::int32_t>(width)});
      };
      draw_masks(
          of, shape_, random,
          [&](MaskPlace place) { add(0, place.begin, lines, place.width); },
          [&](MaskPlace place) {
            for (std::int64_t c = 0; c < shape_.channels; ++c)
              add(c * shape_.frequencies + place.begin, 0, place.width, times);
          });
    }
    if (boxes_.empty()) return;
    const auto value = static_cast<float>(of.value);
    stream.run(Mask{.out = to.data,
                    .rows = end,
                    .height = lines,
                    .width = times,
                    .element_bytes = sizeof(value),
                    .value = std::bit_cast<std::uint32_t>(value),
                    .boxes = boxes_});
  }

  /// At most 2^28, as settings of fields have it.
  std::int32_t elements() const {
    return static_cast<std::int32_t>(shape_.elements());
  }

  const AugmentShape shape_;
  const std::vector<Augmentation> list_;
  Augmenter augmenter_;
  const bool masks_alone_;
  std::vector<CropWindow> windows_;  // scratch, as is:
  std::vector<MaskBox> boxes_;
};

}  // namespace

std::unique_ptr<FieldFinisher> make_augment_finisher(
    const std::vector<Augmentation>& list, const Shape& row) {
  return std::make_unique<AugmentFinisher>(list, row);
}

}  // namespace penstock
