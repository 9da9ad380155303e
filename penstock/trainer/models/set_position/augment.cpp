#include "penstock/trainer/models/set_position/augment.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

namespace penstock {
namespace {

// What a number is drawn for; the last key of Random.
enum Purpose : std::uint64_t {
  kHeard = 0x6175676d656e7400,
  kNoise,
};

}  // namespace

at::Tensor ReceiverAugment::heard(const at::Tensor& mask,
                                  const DrawnFor& rows) const {
  if (dropout == 0) return mask;
  at::Tensor some =
      mask * drawn(mask, mask.size(1), seed, rows, kHeard,
                   [this](Random& random, std::span<float> numbers) {
                     for (float& number : numbers)
                       number = random.uniform() < dropout ? 0 : 1;
                   });
  return at::where(some.sum(1, /*keepdim=*/true) > 0, some, mask);
}

at::Tensor ReceiverAugment::noisy(const at::Tensor& set, std::int64_t key,
                                  const DrawnFor& rows) const {
  if (noise == 0) return set;
  at::Tensor changed = set.clone();  // the batch's memory is not ours to write
  changed.select(2, key).add_(
      drawn(set, set.size(1), seed, rows, kNoise,
            [this](Random& random, std::span<float> numbers) {
              for (float& number : numbers)
                number = static_cast<float>(noise * random.normal());
            }));
  return changed;
}

}  // namespace penstock
