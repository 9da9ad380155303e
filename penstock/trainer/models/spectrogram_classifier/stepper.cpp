#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <algorithm>
#include <utility>

#include "penstock/models/spectrogram_classifier/descriptor.h"
#include "penstock/trainer/autocast.h"
#include "penstock/trainer/classifier.h"
#include "penstock/trainer/recompute.h"
#include "penstock/trainer/trainer.h"

// [channels, bands, times] -> stages of two convolutions with their batch
// normalisation; the larger of each two neighbours continues -> the mean over
// all places -> how likely each class is.
namespace penstock {
namespace {

class SmallNetwork final : public ClassNetwork {
 public:
  SmallNetwork(const ModelSpec& spec, const Shape& shape, std::int64_t classes,
               const at::TensorOptions& where)
      : settings_(spectrogram_classifier_of(spec)),
        learning_(spec.learning),
        recompute_(learning_.gradient_checkpointing),
        device_(where.device()),
        layers_(settings_.seed, where,
                spec.path.empty() ? nullptr
                                  : std::make_shared<WeightFiles>(spec.path)) {
    layers_.channels_last(true);
    std::int64_t in = shape.size() == 3 ? shape[0] : 1;
    std::int64_t bands = shape.size() >= 2 ? shape[shape.size() - 2] : 1;
    std::int64_t times = shape.back();
    for (std::int64_t i = 0; i < settings_.depth; ++i) {
      const std::int64_t out = settings_.width << i;
      Stage stage{.high = bands > 1 ? 3 : 1,
                  .wide = times > 1 ? 3 : 1,
                  .pool_high = bands > 1 ? 2 : 1,
                  .pool_wide = times > 1 ? 2 : 1};
      const std::string name = "stage" + std::to_string(i);
      stage.first = layers_.convolution(
          name + ".conv1", {out, in, stage.high, stage.wide}, false);
      stage.first_norm = layers_.batch_norm(name + ".bn1", out);
      stage.second = layers_.convolution(
          name + ".conv2", {out, out, stage.high, stage.wide}, false);
      stage.second_norm = layers_.batch_norm(name + ".bn2", out);
      stages_.push_back(stage);
      bands /= stage.pool_high, times /= stage.pool_wide;
      in = out;
    }
    head_ = layers_.linear("head", in, classes);
    layers_.begun();
  }

  at::Tensor operator()(const at::Tensor& input, Mode mode) const override {
    at::Tensor x = input;
    for (const Stage& stage : stages_) {
      Part part = [this, &stage, mode](const at::Tensor& in, bool again) {
        return through(stage, in,
                       mode == Mode::look ? Layers::Statistics::kept
                       : mode == Mode::learn && !again
                           ? Layers::Statistics::keep
                           : Layers::Statistics::batch);
      };
      x = recompute_ ? recomputed(part, x) : part(x, false);
    }
    return layers_.apply(head_, x.mean({2, 3}));
  }
  const Layers& layers() const override { return layers_; }
  bool begin_recompute() override { return !std::exchange(recompute_, true); }

 private:
  struct Stage {
    std::int64_t high = 3, wide = 3, pool_high = 2, pool_wide = 2;
    Layers::Layer first = {}, second = {};
    Layers::BatchNorm first_norm = {}, second_norm = {};
  };

  at::Tensor through(const Stage& stage, const at::Tensor& in,
                     Layers::Statistics statistics) const {
    const Autocast cast(device_, learning_.precision);
    const std::array<std::int64_t, 2> around{stage.high / 2, stage.wide / 2};
    auto layer = [&](Layers::Layer convolution, const Layers::BatchNorm& norm,
                     const at::Tensor& x) {
      return at::relu(layers_.batch_normalised(
          norm, layers_.convolved(convolution, x, {1, 1}, around), statistics));
    };
    at::Tensor x = layer(stage.second, stage.second_norm,
                         layer(stage.first, stage.first_norm, in));
    return at::max_pool2d(x, {stage.pool_high, stage.pool_wide});
  }

  const SpectrogramClassifier settings_;
  const Learning learning_;
  bool recompute_;
  const at::Device device_;
  Layers layers_;
  std::vector<Stage> stages_;
  Layers::Layer head_;
};

}  // namespace

std::unique_ptr<Model> make_spectrogram_classifier(
    const ModelSpec& spec, const FittedFields& data,
    const at::TensorOptions& where) {
  const SpectrogramClassifier& settings = spectrogram_classifier_of(spec);
  const Output input =
      target_field(settings.spectrogram, data).kind->facts().outputs[0];
  ClassifierOptions options{
      .input = input.name,
      .shape = input.row_shape,
      .channels_last = true,
      .target = target_of_classifier(settings.target, data,
                                     spec.learning.balanced_classes),
      .learning = spec.learning,
      .balance = true};
  options.answers =
      answers_about_classes(options.target, target_field(settings.target, data),
                            data.statistics_of(settings.target));
  options.description["kind"] = "spectrogram_classifier";
  options.description["width"] = settings.width;
  options.description["depth"] = settings.depth;
  options.description["seed"] = static_cast<std::int64_t>(settings.seed);
  auto network = std::make_unique<SmallNetwork>(spec, input.row_shape,
                                                options.target.classes, where);
  return make_classifier(std::move(options), std::move(network),
                         where.device());
}

}  // namespace penstock
