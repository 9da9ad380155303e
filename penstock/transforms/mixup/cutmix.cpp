#include "penstock/transforms/mixup/cutmix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/mixup/beta.h"
#include "penstock/transforms/mixup/partners.h"
#include "penstock/transforms/operations.h"

namespace penstock {
namespace {

const SettingsTable<CutMix>& cutmix_settings() {
  static const SettingsTable<CutMix> table =
      SettingsTable<CutMix>()
          .names("cutmix", &CutMix::outputs,
                 "Names of the picture tensors that get a rectangle of another "
                 "picture")
          .number("alpha", &CutMix::alpha, kLeastAlpha, kMostAlpha,
                  "Parameter of the distribution Beta(alpha, alpha) that "
                  "lambda is drawn from")
          .texts("labels", &CutMix::labels,
                 "Names of label tensors: the labels of the mixed-in row are "
                 "added as NAME_mixed");
  return table;
}

/// A picture's rows lie in `planes`, each of `height` rows of `width` pixels.
struct Planes {
  std::int64_t planes = 0, height = 0, width = 0;
  std::size_t pixel = 0;  ///< bytes
};

/// No planes: it is no picture.
Planes planes_of(const Output& output) {
  const Shape& shape = output.row_shape;
  const std::size_t element = size_of(output.dtype);
  auto has_channels = [&](std::size_t at) {
    return shape[at] == 1 || shape[at] == 3;
  };
  if (shape.size() == 2) return {1, shape[0], shape[1], element};
  if (shape.size() != 3) return {};
  if (has_channels(0)) return {shape[0], shape[1], shape[2], element};
  if (!has_channels(2)) return {};
  return {1, shape[0], shape[1], element * static_cast<std::size_t>(shape[2])};
}

class BoundCutMix final : public PartnerOperation {
 public:
  BoundCutMix(const std::vector<Output>& outputs, double alpha,
              MixedTensors tensors)
      : PartnerOperation(outputs, tensors),
        alpha_(alpha),
        first_(planes_of(outputs[tensors.uses[0]])) {}

 private:
  float share_of(const BatchKey& key) const override {
    const auto [left, top, right, bottom] =
        cutmix_box(key, alpha_, first_.height, first_.width);
    return static_cast<float>(
        1.0 - static_cast<double>((right - left) * (bottom - top)) /
                  static_cast<double>(first_.width * first_.height));
  }
  void mix(const Output& output, std::byte* rows,
           std::span<const std::int64_t> order, const BatchKey& key,
           std::vector<std::byte>& aside) const override {
    const Planes of = planes_of(output);
    // By name: clang 14 takes no structured bindings into lambdas.
    const std::array<std::int64_t, 4> box =
        cutmix_box(key, alpha_, of.height, of.width);
    const std::int64_t left = box[0], top = box[1], right = box[2],
                       bottom = box[3];
    if (left == right) return;
    auto at = [&](std::int64_t plane, std::int64_t y) {
      return static_cast<std::size_t>((plane * of.height + y) * of.width +
                                      left) *
             of.pixel;
    };
    const std::size_t bytes = static_cast<std::size_t>(right - left) * of.pixel;
    for_partners(output, rows, order, aside,
                 [&](std::byte* row, const std::byte* partner) {
                   for (std::int64_t plane = 0; plane < of.planes; ++plane)
                     for (std::int64_t y = top; y < bottom; ++y)
                       std::memcpy(row + at(plane, y), partner + at(plane, y),
                                   bytes);
                 });
  }

  const double alpha_;
  const Planes first_;
};

class CutMixKind final : public BatchOperation {
 public:
  CutMixKind(CutMix cutmix, std::string path)
      : cutmix_(std::move(cutmix)), path_(std::move(path)) {}

  std::unique_ptr<BoundOperation> bind(
      const std::vector<Output>& outputs) const override {
    Planes first;
    auto check = [&](const Output& output) {
      const Planes of = planes_of(output);
      if (of.planes == 0)
        refuse(
            "'" + output.name + "' does not hold pictures",
            "name a tensor of [channels, height, width], or [height, width]");
      if (first.planes > 0 &&
          (of.height != first.height || of.width != first.width))
        refuse("'" + output.name + "' has another size than '" +
                   cutmix_.outputs[0] + "'",
               "name pictures of one height and width");
      first = of;
    };
    return std::make_unique<BoundCutMix>(
        outputs, cutmix_.alpha,
        MixedTensors(outputs, cutmix_.outputs, cutmix_.labels, "cutmix", path_,
                     check));
  }
  Json recipe() const override { return cutmix_settings().shown(cutmix_); }

 private:
  [[noreturn]] void refuse(std::string why, std::string next) const {
    refuse_operation(path_ + ".cutmix", std::move(why), std::move(next));
  }

  const CutMix cutmix_;
  const std::string path_;
};

}  // namespace

// CutMix (Yun et al. 2019): a rectangle of the shape of the picture with the
// share 1 - lambda of its area, about a point that is uniform; where it is cut
// off at an edge, share_of() measures what is left of it.
std::array<std::int64_t, 4> cutmix_box(const BatchKey& key, double alpha,
                                       std::int64_t height,
                                       std::int64_t width) {
  constexpr std::uint64_t kBox = 0x6375746d6978;  // "cutmix"
  Random draws = key.random(kBox);
  const double lambda = draw_beta(draws, alpha);
  // Drawn as parts of the sides, so that pictures of all sizes agree.
  const auto x =
      static_cast<std::int64_t>(draws.uniform() * static_cast<double>(width));
  const auto y =
      static_cast<std::int64_t>(draws.uniform() * static_cast<double>(height));
  const double half = 0.5 * std::sqrt(1.0 - lambda);
  const auto w = static_cast<std::int64_t>(half * static_cast<double>(width));
  const auto h = static_cast<std::int64_t>(half * static_cast<double>(height));
  return {std::max<std::int64_t>(x - w, 0), std::max<std::int64_t>(y - h, 0),
          std::min(x + w, width), std::min(y + h, height)};
}

std::shared_ptr<const BatchOperation> make_cutmix(CutMix cutmix,
                                                  std::string path) {
  if (!(cutmix.alpha >= kLeastAlpha && cutmix.alpha <= kMostAlpha))
    refuse_operation(
        path + ".alpha",
        "found " + std::to_string(cutmix.alpha) + ", expected 0.001 to 1000",
        "1 draws the share of the area uniformly");
  return std::make_shared<CutMixKind>(std::move(cutmix), std::move(path));
}

OperationDescriptor cutmix_operation() {
  return {.key = "cutmix",
          .settings = [] { return cutmix_settings().schemas(); },
          .make =
              [](Spec& entry) {
                CutMix cutmix;
                cutmix_settings().read(entry, cutmix);
                return make_cutmix(std::move(cutmix), entry.path());
              }};
}

}  // namespace penstock
