#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "penstock/transforms/augment/augment.h"

namespace penstock {
namespace {

/// Masks, factors and places, which have the same bits everywhere. Sums and
/// sines have not.
bool has_same_bits(const Augmentation& one) {
  const auto* masks = std::get_if<SpecAugment>(&one);
  return masks != nullptr ? masks->time_warp == 0
                          : !std::holds_alternative<Noise>(one);
}

/// What a device does to rows on their way from one memory to another: places
/// in the list of augmentations, none of which need be there.
struct Pass {
  std::optional<std::size_t> gain = {}, shift = {};
  std::vector<std::size_t> masks = {};  ///< set behind these
};

// A pass moves with one gain and one shift and then masks, in this order. What
// would come out of order begins the next pass: a second gain or shift, and
// either of them after a mask. A gain and a shift may change places, because a
// factor and a move do not affect each other.
std::vector<Pass> passes_of(const std::vector<Augmentation>& list) {
  std::vector<Pass> passes(1);
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (std::holds_alternative<SpecAugment>(list[at])) {
      passes.back().masks.push_back(at);
      continue;
    }
    auto which =
        std::holds_alternative<Gain>(list[at]) ? &Pass::gain : &Pass::shift;
    if (passes.back().*which || !passes.back().masks.empty())
      passes.emplace_back();
    passes.back().*which = at;
  }
  return passes;
}

class AugmentFinisher final : public FieldFinisher {
 public:
  AugmentFinisher(const std::vector<Augmentation>& list, const Shape& row)
      : shape_(row),
        list_(list),
        augmenter_(list),
        on_device_(std::ranges::all_of(list, has_same_bits)),
        passes_(passes_of(list)) {}

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    augmenter_.copy(rows, key, shape_, to[0]);
  }

  std::optional<QueueNeeds> queue_needs(MemoryKind) const override {
    if (!on_device_) return std::nullopt;
    const auto row = static_cast<std::size_t>(shape_.elements());
    return QueueNeeds{.scratch_bytes =
                          passes_.size() > 1 ? row * sizeof(float) : 0};
  }

  // Each pass reads what the one before it wrote: by turns to the scratch
  // memory and to the batch, where the last one ends.
  void queue(const QueuedRows& rows, Stream& stream) override {
    const TensorPlace between{.data = rows.scratch, .bytes = rows.to[0].bytes};
    const TensorPlace* from = nullptr;
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      const bool to_batch = (passes_.size() - p) % 2 == 1;
      const TensorPlace& to = to_batch ? rows.to[0] : between;
      move(passes_[p], rows, from, to, stream);
      for (std::size_t at : passes_[p].masks) mask(at, rows, to, stream);
      from = &to;
    }
  }

 private:
  static std::int64_t row_of(const TensorPlace& place, std::size_t r) {
    return place.starts.empty() ? static_cast<std::int64_t>(r)
                                : place.starts[r];
  }

  /// `from`: null: the stored rows, which may be anywhere in the device's
  /// memory.
  void move(const Pass& pass, const QueuedRows& rows, const TensorPlace* from,
            const TensorPlace& to, Stream& stream) {
    const auto* gain =
        pass.gain ? std::get_if<Gain>(&list_[*pass.gain]) : nullptr;
    const auto* shift =
        pass.shift ? std::get_if<TimeShift>(&list_[*pass.shift]) : nullptr;
    moved_.clear();
    std::int64_t end = 0;
    for (std::size_t r = 0; r < rows.rows.size(); ++r) {
      const StoredRow& row = rows.rows[r];
      MovedRow moved{.from = from == nullptr ? row.tensors : from->row(r),
                     .row = row_of(to, r)};
      end = std::max(end, moved.row + 1);
      if (gain != nullptr)
        moved.factor = drawn_factor(*gain, draws_of(rows.key, row, *pass.gain))
                           .value_or(1);
      if (shift != nullptr)
        moved.by = static_cast<std::int32_t>(drawn_shift(
            *shift, shape_.times, draws_of(rows.key, row, *pass.shift)));
      moved_.push_back(moved);
    }
    stream.run(Move{.out = to.data,
                    .rows = end,
                    .height = static_cast<std::int32_t>(shape_.lines()),
                    .width = static_cast<std::int32_t>(shape_.times),
                    .wraps = shift != nullptr && shift->wraps,
                    .moved = moved_});
  }

  void mask(std::size_t at, const QueuedRows& rows, const TensorPlace& to,
            Stream& stream) {
    const auto& of = std::get<SpecAugment>(list_[at]);
    const auto lines = static_cast<std::int32_t>(shape_.lines());
    const auto times = static_cast<std::int32_t>(shape_.times);
    boxes_.clear();
    std::int64_t end = 0;
    for (std::size_t r = 0; r < rows.rows.size(); ++r) {
      const std::int64_t row = row_of(to, r);
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

  const AugmentShape shape_;
  const std::vector<Augmentation> list_;
  Augmenter augmenter_;
  const bool on_device_;
  const std::vector<Pass> passes_;
  std::vector<MovedRow> moved_;  // scratch, as is:
  std::vector<MaskBox> boxes_;
};

}  // namespace

std::unique_ptr<FieldFinisher> make_augment_finisher(
    const std::vector<Augmentation>& list, const Shape& row) {
  return std::make_unique<AugmentFinisher>(list, row);
}

}  // namespace penstock
