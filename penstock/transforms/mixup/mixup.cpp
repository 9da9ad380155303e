#include "penstock/transforms/mixup/mixup.h"

#include <utility>

#include "penstock/base/half.h"
#include "penstock/base/settings.h"
#include "penstock/transforms/mixup/beta.h"
#include "penstock/transforms/mixup/partners.h"
#include "penstock/transforms/operations.h"

namespace penstock {
namespace {

const SettingsTable<Mixup>& mixup_settings() {
  static const SettingsTable<Mixup> table =
      SettingsTable<Mixup>()
          .names("mixup", &Mixup::outputs,
                 "Names of the float tensors that are mixed")
          .number("alpha", &Mixup::alpha, kLeastAlpha, kMostAlpha,
                  "Parameter of the distribution Beta(alpha, alpha) that "
                  "lambda is drawn from")
          .texts("labels", &Mixup::labels,
                 "Names of label tensors: the labels of the mixed-in row are "
                 "added as NAME_mixed");
  return table;
}

// mixup (Zhang et al. 2017): lambda * row + (1 - lambda) * partner, with one
// lambda for the batch. 1 - lambda is computed in the tensor's own type, so
// float64 rows lose nothing to the float32 of lambda.
template <class Number>
void mix_row(std::byte* row, const std::byte* partner, std::size_t bytes,
             float lambda) {
  auto own = static_cast<Number>(lambda);
  Number other = 1 - own;
  auto* to = reinterpret_cast<Number*>(row);
  const auto* from = reinterpret_cast<const Number*>(partner);
  for (std::size_t i = 0; i < bytes / sizeof(Number); ++i)
    to[i] = own * to[i] + other * from[i];
}

/// Numbers of 16 bits are mixed as float32, and rounded once.
template <float (*number_of)(std::uint16_t), std::uint16_t (*bits_of)(float)>
void mix_halves(std::byte* row, const std::byte* partner, std::size_t bytes,
                float lambda) {
  auto* to = reinterpret_cast<std::uint16_t*>(row);
  const auto* from = reinterpret_cast<const std::uint16_t*>(partner);
  for (std::size_t i = 0; i < bytes / sizeof(*to); ++i)
    to[i] =
        bits_of(lambda * number_of(to[i]) + (1 - lambda) * number_of(from[i]));
}

using MixRow = void (*)(std::byte* row, const std::byte* partner,
                        std::size_t bytes, float lambda);

/// Null where such numbers are not mixed.
MixRow mixer_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return mix_row<float>;
    case Dtype::float64:
      return mix_row<double>;
    case Dtype::bfloat16:
      return mix_halves<from_bfloat16, to_bfloat16>;
    case Dtype::float16:
      return mix_halves<from_float16, to_float16>;
    default:
      return nullptr;
  }
}

class BoundMixup final : public PartnerOperation {
 public:
  BoundMixup(const std::vector<Output>& outputs, double alpha,
             MixedTensors tensors)
      : PartnerOperation(outputs, std::move(tensors)), alpha_(alpha) {}

 private:
  float share_of(const BatchKey& key) const override {
    constexpr std::uint64_t kLambda = 0x6c616d6264;  // "lambd"
    Random draws = key.random(kLambda);
    return static_cast<float>(draw_beta(draws, alpha_));
  }
  void mix(const Output& output, std::byte* rows,
           std::span<const std::int64_t> order, const BatchKey& key,
           std::vector<std::byte>& aside) const override {
    const float lambda = share_of(key);
    const std::size_t bytes = output.bytes();
    const MixRow mixed = mixer_of(output.dtype);
    for_partners(output, rows, order, aside,
                 [&](std::byte* row, const std::byte* partner) {
                   mixed(row, partner, bytes, lambda);
                 });
  }

  const double alpha_;
};

class MixupKind final : public BatchOperation {
 public:
  MixupKind(Mixup mixup, std::string path)
      : mixup_(std::move(mixup)), path_(std::move(path)) {}

  std::unique_ptr<BoundOperation> bind(
      const std::vector<Output>& outputs) const override {
    auto check = [this](const Output& output) {
      if (mixer_of(output.dtype) != nullptr) return;
      refuse_operation(path_ + ".mixup",
                       "'" + output.name + "' is " +
                           std::string(name_of(output.dtype)) +
                           ", expected float32, float64, float16 or bfloat16",
                       "make it a float tensor, or name it in 'labels', which "
                       "are not changed");
    };
    return std::make_unique<BoundMixup>(
        outputs, mixup_.alpha,
        MixedTensors(outputs, mixup_.outputs, mixup_.labels, "mixup", path_,
                     check));
  }

  Json recipe() const override { return mixup_settings().shown(mixup_); }

 private:
  const Mixup mixup_;
  const std::string path_;
};

}  // namespace

std::shared_ptr<const BatchOperation> make_mixup(Mixup mixup,
                                                 std::string path) {
  if (!(mixup.alpha >= kLeastAlpha && mixup.alpha <= kMostAlpha))
    refuse_operation(
        path + ".alpha",
        "found " + std::to_string(mixup.alpha) + ", expected 0.001 to 1000",
        "a small alpha mixes little, 1 draws lambda uniformly");
  return std::make_shared<MixupKind>(std::move(mixup), std::move(path));
}

OperationDescriptor mixup_operation() {
  return {.key = "mixup",
          .settings = [] { return mixup_settings().schemas(); },
          .make =
              [](Spec& entry) {
                Mixup mixup;
                mixup_settings().read(entry, mixup);
                return make_mixup(std::move(mixup), entry.path());
              }};
}

}  // namespace penstock
