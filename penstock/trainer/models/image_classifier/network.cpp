#include "penstock/trainer/models/image_classifier/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <array>
#include <cmath>
#include <utility>

#include "penstock/trainer/autocast.h"
#include "penstock/trainer/recompute.h"

namespace penstock {
namespace {

using Mode = ClassNetwork::Mode;
using Statistics = Layers::Statistics;

Statistics statistics_of(Mode mode, bool again) {
  if (mode == Mode::look) return Statistics::kept;
  return mode == Mode::learn && !again ? Statistics::keep : Statistics::batch;
}

/// The layer that tells the classes, from the file where it is of as many.
Layers::Layer head_of(Layers& layers, const std::string& name, std::int64_t in,
                      std::int64_t classes, const WeightFiles* files) {
  if (files != nullptr && files->has(name + ".weight") &&
      files->shape_of(name + ".weight") != Shape{classes, in}) {
    log(LogLevel::warning,
        "the weights of model.path distinguish " +
            std::to_string(files->shape_of(name + ".weight")[0]) +
            " classes, not " + std::to_string(classes) + ": '" + name +
            "' starts from random weights");
    layers.begun();
  }
  return layers.linear(name, in, classes);
}

/// What the networks have in common: blocks, one after the other, each computed
/// again where that is wanted.
class BlockNetwork : public ClassNetwork {
 public:
  BlockNetwork(const ImageNetworkOptions& options,
               const at::TensorOptions& where,
               std::shared_ptr<const WeightFiles> files)
      : o_(options),
        device_(where.device()),
        layers_(options.settings.seed, where, std::move(files)) {
    layers_.channels_last(options.settings.channels_last);
  }
  const Layers& layers() const override { return layers_; }
  bool begin_recompute() override { return !std::exchange(o_.recompute, true); }

 protected:
  template <class Block>
  at::Tensor through(const Block& block, const at::Tensor& x, Mode mode) const {
    Part part = [this, &block, mode](const at::Tensor& in, bool again) {
      const Autocast cast(device_, o_.precision);
      return block_of(block, in, statistics_of(mode, again));
    };
    return o_.recompute ? recomputed(part, x) : part(x, false);
  }
  struct Residual {
    std::vector<Layers::Layer> convolutions;
    std::vector<Layers::BatchNorm> norms;
    std::int64_t stride = 1;
    bool shrinks = false;  ///< what is added goes through the last of both
  };
  struct Encoder {
    Layers::Layer first_norm, joins, second_norm, in, out;
    std::size_t looks_weight = 0, looks_bias = 0;
  };
  at::Tensor block_of(const Residual& block, const at::Tensor& x,
                      Statistics statistics) const;
  at::Tensor block_of(const Encoder& block, const at::Tensor& x,
                      Statistics) const;

  ImageNetworkOptions o_;
  const at::Device device_;
  Layers layers_;
};

// Of two convolutions the first has the stride, of three the second.
at::Tensor BlockNetwork::block_of(const Residual& block, const at::Tensor& x,
                                  Statistics statistics) const {
  auto normed = [&](std::size_t i, const at::Tensor& of) {
    return layers_.batch_normalised(block.norms[i], of, statistics);
  };
  const std::size_t count = block.convolutions.size() - (block.shrinks ? 1 : 0);
  at::Tensor inner = x;
  for (std::size_t i = 0; i < count; ++i) {
    const bool wide = count == 2 || i == 1;
    inner = layers_.convolved(block.convolutions[i], inner,
                              i == count - 2 ? block.stride : 1, wide ? 1 : 0);
    inner = normed(i, inner);
    if (i + 1 < count) inner = at::relu(inner);
  }
  at::Tensor added =
      block.shrinks ? normed(count, layers_.convolved(block.convolutions[count],
                                                      x, block.stride, 0))
                    : x;
  return at::relu(inner + added);
}

constexpr double kEncoderEpsilon = 1e-6;
constexpr std::int64_t kHeads = 6, kWidth = 384, kInner = 1536, kPatch = 16;
constexpr int kEncoders = 12;

at::Tensor BlockNetwork::block_of(const Encoder& block, const at::Tensor& x,
                                  Statistics) const {
  at::Tensor seen = layers_.normalised(block.first_norm, x, kEncoderEpsilon);
  at::Tensor all = at::linear(seen, layers_.tensor(block.looks_weight),
                              layers_.tensor(block.looks_bias));
  auto head = [&](std::int64_t i) {
    return all.slice(-1, i * kWidth, (i + 1) * kWidth)
        .unflatten(-1, {kHeads, -1})
        .transpose(1, 2);
  };
  at::Tensor joined =
      at::scaled_dot_product_attention(head(0), head(1), head(2))
          .transpose(1, 2)
          .flatten(2);
  at::Tensor middle = x + layers_.apply(block.joins, joined);
  at::Tensor inner =
      layers_.normalised(block.second_norm, middle, kEncoderEpsilon);
  return middle +
         layers_.apply(block.out, at::gelu(layers_.apply(block.in, inner)));
}

// He et al. (2016) with the names and shapes of torchvision, whose weights it
// reads: of ResNet-50 the stride is in the 3 x 3 convolution, the later
// variant.
class ResNet final : public BlockNetwork {
 public:
  ResNet(const ImageNetworkOptions& options, const at::TensorOptions& where,
         const std::shared_ptr<const WeightFiles>& files)
      : BlockNetwork(options, where, files) {
    const bool deep = o_.settings.network == ImageClassifier::Network::resnet50;
    const std::array<int, 4> blocks =
        deep ? std::array{3, 4, 6, 3} : std::array{2, 2, 2, 2};
    first_ = layers_.convolution("conv1", {64, 3, 7, 7}, false);
    first_norm_ = layers_.batch_norm("bn1", 64);
    std::int64_t in = 64;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage)
      for (int i = 0; i < blocks[stage]; ++i) {
        const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        in = add_block(
            "layer" + std::to_string(stage + 1) + "." + std::to_string(i) + ".",
            in, std::int64_t{64} << stage, stride, deep);
      }
    head_ = head_of(layers_, "fc", in, o_.classes, files.get());
    layers_.begun();
    if (files != nullptr) files->check_all_taken({"fc.weight", "fc.bias"});
  }

  at::Tensor operator()(const at::Tensor& input, Mode mode) const override {
    at::Tensor x = layers_.convolved(first_, input, 2, 3);
    x = at::relu(
        layers_.batch_normalised(first_norm_, x, statistics_of(mode, false)));
    x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    for (const Residual& block : blocks_) x = through(block, x, mode);
    return layers_.apply(head_, x.mean({2, 3}));
  }

 private:
  /// The channels that come out.
  std::int64_t add_block(const std::string& name, std::int64_t in,
                         std::int64_t width, std::int64_t stride, bool deep) {
    Residual block{.stride = stride};
    const std::int64_t out = deep ? 4 * width : width;
    auto add = [&](const std::string& convolution, const std::string& norm,
                   std::int64_t from, std::int64_t to, std::int64_t kernel) {
      block.convolutions.push_back(layers_.convolution(
          name + convolution, {to, from, kernel, kernel}, false));
      block.norms.push_back(layers_.batch_norm(name + norm, to));
    };
    add("conv1", "bn1", in, width, deep ? 1 : 3);
    add("conv2", "bn2", width, width, 3);
    if (deep) add("conv3", "bn3", width, out, 1);
    block.shrinks = stride != 1 || in != out;
    if (block.shrinks) add("downsample.0", "downsample.1", in, out, 1);
    blocks_.push_back(std::move(block));
    return out;
  }

  Layers::Layer first_, head_;
  Layers::BatchNorm first_norm_;
  std::vector<Residual> blocks_;
};

/// ViT-S/16: VisionTransformer(size, 16, 12, 6, 384, 1536).
/// Dosovitskiy et al. (2021); a patch is a convolution whose stride is its
/// size.
class VisionTransformer final : public BlockNetwork {
 public:
  VisionTransformer(const ImageNetworkOptions& options,
                    const at::TensorOptions& where,
                    const std::shared_ptr<const WeightFiles>& files)
      : BlockNetwork(options, where, files) {
    const std::int64_t patches = o_.height / kPatch * (o_.width / kPatch);
    class_ = layers_.numbers("class_token", {1, 1, kWidth}, 0);
    places_ = layers_.numbers("encoder.pos_embedding", {1, patches + 1, kWidth},
                              0.02);
    patch_ =
        layers_.convolution("conv_proj", {kWidth, 3, kPatch, kPatch}, true);
    for (int i = 0; i < kEncoders; ++i)
      add_block("encoder.layers.encoder_layer_" + std::to_string(i) + ".");
    norm_ = layers_.normal("encoder.ln", kWidth);
    head_ = head_of(layers_, "heads.head", kWidth, o_.classes, files.get());
    layers_.zero(head_);
    layers_.begun();
    if (files != nullptr)
      files->check_all_taken({"heads.head.weight", "heads.head.bias"});
  }

  at::Tensor operator()(const at::Tensor& input, Mode mode) const override {
    at::Tensor patches = layers_.convolved(patch_, input, kPatch, 0);
    patches = patches.flatten(2).transpose(1, 2);
    at::Tensor first = layers_.tensor(class_).to(patches.scalar_type());
    at::Tensor x =
        at::cat({first.expand({input.size(0), -1, -1}), patches}, 1) +
        layers_.tensor(places_);
    for (const Encoder& block : blocks_) x = through(block, x, mode);
    x = layers_.normalised(norm_, x.select(1, 0), kEncoderEpsilon);
    return layers_.apply(head_, x);
  }

 private:
  void add_block(const std::string& name) {
    Encoder block;
    block.first_norm = layers_.normal(name + "ln_1", kWidth);
    const std::string self = name + "self_attention.";
    block.looks_weight =
        layers_.uniform(self + "in_proj_weight", {3 * kWidth, kWidth},
                        std::sqrt(6.0 / (4 * kWidth)));
    block.looks_bias = layers_.numbers(self + "in_proj_bias", {3 * kWidth}, 0);
    block.joins = layers_.linear(self + "out_proj", kWidth, kWidth);
    block.second_norm = layers_.normal(name + "ln_2", kWidth);
    block.in = layers_.linear(name + "mlp.0", kWidth, kInner);
    block.out = layers_.linear(name + "mlp.3", kInner, kWidth);
    blocks_.push_back(block);
  }

  std::size_t class_ = 0, places_ = 0;
  Layers::Layer patch_, norm_, head_;
  std::vector<Encoder> blocks_;
};

}  // namespace

std::unique_ptr<ClassNetwork> make_image_network(
    const ImageNetworkOptions& options, const at::TensorOptions& where,
    const std::shared_ptr<const WeightFiles>& files) {
  if (options.settings.network == ImageClassifier::Network::vit_s16)
    return std::make_unique<VisionTransformer>(options, where, files);
  return std::make_unique<ResNet>(options, where, files);
}

}  // namespace penstock
