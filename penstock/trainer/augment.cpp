#include "penstock/trainer/augment.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

namespace penstock {
namespace {

// What a number is drawn for; the last key of Random.
enum Purpose : std::uint64_t {
  kHeard = 0x6175676d656e7400,
  kNoise,
};

// A number for each element of each row, drawn on the host, then sent to where
// `like` is.
template <class Draw>
at::Tensor drawn(const at::Tensor& like, std::uint64_t seed, std::int64_t epoch,
                 std::span<const SampleId> ids, Purpose purpose, Draw draw) {
  std::int64_t max = like.size(1);
  at::Tensor numbers = at::empty({like.size(0), max}, at::kFloat);
  float* number = numbers.mutable_data_ptr<float>();
  for (SampleId id : ids) {
    Random random(seed, static_cast<std::uint64_t>(epoch),
                  static_cast<std::uint64_t>(id), purpose);
    for (std::int64_t i = 0; i < max; ++i)
      *number++ = static_cast<float>(draw(random));
  }
  return numbers.to(like.device(), /*non_blocking=*/true);
}

}  // namespace

at::Tensor Augment::heard(const at::Tensor& mask, std::int64_t epoch,
                          std::span<const SampleId> ids) const {
  if (dropout == 0) return mask;
  at::Tensor some =
      mask * drawn(mask, seed, epoch, ids, kHeard, [&](Random& random) {
        return random.uniform() < dropout ? 0 : 1;
      });
  return at::where(some.sum(1, /*keepdim=*/true) > 0, some, mask);
}

at::Tensor Augment::noisy(const at::Tensor& set, std::int64_t key,
                          std::int64_t epoch,
                          std::span<const SampleId> ids) const {
  if (noise == 0) return set;
  at::Tensor changed = set.clone();  // the batch's memory is not ours to write
  changed.select(2, key).add_(
      drawn(set, seed, epoch, ids, kNoise,
            [&](Random& random) { return noise * random.normal(); }));
  return changed;
}

}  // namespace penstock
