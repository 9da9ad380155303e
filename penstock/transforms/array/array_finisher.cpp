#include <cstring>

#include "penstock/transforms/array/array.h"

namespace penstock {
namespace {

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
    return make_augment_finisher(array.augment, array.row_shape());
  return nullptr;
}

}  // namespace penstock
