#include "penstock/trainer/models/set_position/augment.h"

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

// Writes a number for each element of each row.
template <class Draw>
void draw_all(float* number, std::int64_t max, std::uint64_t seed,
              const Augment::Dataset& rows, Purpose purpose, Draw draw) {
  for (SampleId id : rows.ids) {
    Random random(seed, static_cast<std::uint64_t>(rows.epoch),
                  static_cast<std::uint64_t>(id), purpose);
    for (std::int64_t i = 0; i < max; ++i)
      *number++ = static_cast<float>(draw(random));
  }
}

// A number for each element of each row of `like`, drawn on the host, then sent
// to where `like` is.
template <class Draw>
at::Tensor drawn(const at::Tensor& like, std::uint64_t seed,
                 const Augment::Dataset& rows, Purpose purpose, Draw draw) {
  std::int64_t max = like.size(1);
  at::Tensor numbers =
      at::empty({like.size(0), max}, like.options().dtype(at::kFloat));
  auto* there = static_cast<std::byte*>(numbers.mutable_data_ptr());
  std::byte* here = like.is_cpu() ? there : rows.staging.room(numbers.nbytes());
  draw_all(reinterpret_cast<float*>(here), max, seed, rows, purpose, draw);
  if (!like.is_cpu()) rows.staging.send(there, rows.stream);
  return numbers;
}

}  // namespace

at::Tensor Augment::heard(const at::Tensor& mask, const Dataset& rows) const {
  if (dropout == 0) return mask;
  at::Tensor some = mask * drawn(mask, seed, rows, kHeard, [&](Random& random) {
                      return random.uniform() < dropout ? 0 : 1;
                    });
  return at::where(some.sum(1, /*keepdim=*/true) > 0, some, mask);
}

at::Tensor Augment::noisy(const at::Tensor& set, std::int64_t key,
                          const Dataset& rows) const {
  if (noise == 0) return set;
  at::Tensor changed = set.clone();  // the batch's memory is not ours to write
  changed.select(2, key).add_(
      drawn(set, seed, rows, kNoise,
            [&](Random& random) { return noise * random.normal(); }));
  return changed;
}

}  // namespace penstock
