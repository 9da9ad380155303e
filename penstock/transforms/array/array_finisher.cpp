#include <algorithm>
#include <cstring>
#include <optional>

#include "penstock/transforms/array/array.h"

namespace penstock {
namespace {

/// Copies rows and changes them.
class AugmentFinisher final : public FieldFinisher {
 public:
  explicit AugmentFinisher(const Arrays& array)
      : shape_(array.row_shape()), augmenter_(array.augment) {}

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    // Some rows at once: the processor waits for the memory of several, as it
    // does not where what is drawn for one decides what comes next.
    const std::size_t together =
        std::max<std::size_t>(1, kTogetherBytes / to[0].bytes);
    for (std::size_t first = 0; first < rows.size(); first += together) {
      const std::size_t end = std::min(rows.size(), first + together);
      for (std::size_t r = first; r < end; ++r)
        std::memcpy(to[0].row(r), rows[r].tensors, to[0].bytes);
      for (std::size_t r = first; r < end; ++r)
        augmenter_.apply(reinterpret_cast<float*>(to[0].row(r)), shape_,
                         rows[r], key);
    }
  }

 private:
  static constexpr std::size_t kTogetherBytes = 32 << 10;  // the first cache

  const AugmentShape shape_;
  Augmenter augmenter_;
};

/// Writes a mask beside rows that differ in length.
class MaskFinisher final : public FieldFinisher {
 public:
  void finish(std::span<const StoredRow> rows, const DrawKey&,
              std::span<const TensorPlace> to) override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto count = static_cast<std::size_t>(to[0].lengths[r]);
      const std::size_t begin =
          static_cast<std::size_t>(rows[r].range.begin) * to[0].bytes;
      if (count == 0) continue;
      std::memcpy(to[0].row(r), rows[r].run.data() + begin,
                  count * to[0].bytes);
      std::memset(to[1].row(r), 1, count);
    }
  }
};

}  // namespace

std::unique_ptr<FieldFinisher> make_array_finisher(const Arrays& array,
                                                   bool train) {
  if (array.ragged == Arrays::Ragged::pad)
    return std::make_unique<MaskFinisher>();
  if (train && !array.augment.empty())
    return std::make_unique<AugmentFinisher>(array);
  return nullptr;
}

}  // namespace penstock
