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
    augmenter_.copy(rows, key, shape_, to[0]);
  }

 private:
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
