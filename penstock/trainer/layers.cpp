#include "penstock/trainer/layers.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <optional>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/random.h"

namespace penstock {
namespace {

constexpr std::uint64_t kFirstWeight = 0x77656967687473;

[[noreturn]] void refuse_one_value(const std::string& layer) {
  throw Error(ErrorKind::transform,
              {.code = "train.not_finite",
               .what = "the model cannot learn from this batch",
               .where = "layer '" + layer + "'",
               .why = "batch normalisation found one value per channel (one "
                      "row of 1 x 1 values), whose variance is undefined",
               .next = "avoid batches of one row: change loader.batch_size, or "
                       "set loader.tail to \"drop\"; or use a model of less "
                       "depth"});
}

}  // namespace

// On the host, by their place.
// Each row has its own stream of numbers, keyed by the seed, the number of its
// tensor in the model and its own: the first weights are the same on every
// device.
at::Tensor Layers::drawn(at::IntArrayRef shape,
                         const std::function<double(Random&)>& draw) const {
  at::Tensor weights = at::empty(shape, at::kFloat);
  auto* value = weights.mutable_data_ptr<float>();
  const std::int64_t rows = shape[0];
  const std::int64_t width = rows == 0 ? 0 : weights.numel() / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    Random random(seed_, tensors_.size(), static_cast<std::uint64_t>(row),
                  kFirstWeight);
    for (std::int64_t i = 0; i < width; ++i)
      *value++ = static_cast<float>(draw(random));
  }
  return weights;
}

std::size_t Layers::add(const std::string& name, at::IntArrayRef shape,
                        const Draw& draw) {
  at::Tensor first = files_ != nullptr ? files_->take(name, shape) : draw();
  const bool narrow = fixed_ && shape.size() >= 2;
  at::Tensor value = first.to(narrow ? options_.dtype(fixed_dtype_) : options_,
                              /*non_blocking=*/false, /*copy=*/true);
  if (channels_last_ && shape.size() == 4)
    value = value.contiguous(at::MemoryFormat::ChannelsLast);
  if (!fixed_) {
    value.requires_grad_();
    parameters_.push_back({name, value});
  }
  tensors_.push_back(value);
  return tensors_.size() - 1;
}

std::size_t Layers::uniform(const std::string& name, at::IntArrayRef shape,
                            double bound) {
  return add(name, shape, [&] {
    return drawn(shape, [&](Random& random) {
      return bound * (2 * random.uniform() - 1);
    });
  });
}

std::size_t Layers::adapter(const std::string& name, at::IntArrayRef shape,
                            double bound) {
  std::shared_ptr<const WeightFiles> files = std::exchange(files_, nullptr);
  const std::size_t place = uniform(name, shape, bound);
  files_ = std::move(files);
  return place;
}

std::size_t Layers::numbers(const std::string& name, at::IntArrayRef shape,
                            double deviation, double about) {
  return add(name, shape, [&] {
    if (deviation == 0) return at::full(shape, about, at::kFloat);
    return drawn(shape, [&](Random& random) {
      return about + deviation * random.normal();
    });
  });
}

at::Tensor Layers::first_value(const std::string& name, at::IntArrayRef shape,
                               double deviation) const {
  if (files_ != nullptr) return files_->take(name, shape);
  return drawn(shape,
               [&](Random& random) { return deviation * random.normal(); });
}

std::size_t Layers::buffer(const std::string& name, const at::Tensor& value) {
  at::Tensor first =
      files_ != nullptr ? files_->take(name, value.sizes()) : value;
  tensors_.push_back(
      first.to(options_.dtype(value.scalar_type()), false, true));
  buffers_.push_back({name, tensors_.back()});
  return tensors_.size() - 1;
}

// With a variance of 1 / in.
// So with inputs of variance 1 the outputs have it, too (LeCun et al. 1998);
// the variance of the uniform distribution on [-b, b] is b^2 / 3.
Layers::Layer Layers::linear(const std::string& name, std::int64_t in,
                             std::int64_t out, bool bias) {
  Layer layer;
  layer.weight = uniform(name + ".weight", {out, in},
                         std::sqrt(3.0 / static_cast<double>(in)));
  if (bias) layer.bias = numbers(name + ".bias", {out}, 0);
  return layer;
}

Layers::Layer Layers::normal(const std::string& name, std::int64_t width) {
  std::size_t weight = numbers(name + ".weight", {width}, 0, 1);
  return {weight, numbers(name + ".bias", {width}, 0)};
}

std::size_t Layers::table(const std::string& name, std::int64_t rows,
                          std::int64_t width) {
  return uniform(name + ".weight", {rows, width},
                 std::sqrt(3.0 / static_cast<double>(width)));
}

void Layers::zero(Layer layer) {
  if (files_ == nullptr) tensors_[layer.weight].detach().zero_();
}

void Layers::fix(at::ScalarType dtype) {
  fixed_ = true;
  fixed_dtype_ = dtype;
}

at::Tensor Layers::apply(Layer layer, const at::Tensor& input) const {
  std::optional<at::Tensor> bias;
  if (layer.bias != kNone) bias = tensors_[layer.bias];
  return at::linear(input, tensors_[layer.weight], bias);
}

at::Tensor Layers::normalised(Layer layer, const at::Tensor& input,
                              double epsilon) const {
  return at::layer_norm(input, {input.size(-1)}, tensors_[layer.weight],
                        tensors_[layer.bias], epsilon);
}

at::Tensor Layers::rows_of(std::size_t table, const at::Tensor& classes) const {
  return at::embedding(tensors_[table], classes);
}

// Normal with the variance 2 / fan out (He et al. 2015), as torchvision's
// ResNet begins: a ReLU halves the second moment, which the 2 makes up for.
Layers::Layer Layers::convolution(const std::string& name,
                                  at::IntArrayRef shape, bool bias) {
  const auto fan = static_cast<double>(shape[0] * shape[2] * shape[3]);
  Layer layer;
  layer.weight = numbers(name + ".weight", shape, std::sqrt(2 / fan));
  if (bias) layer.bias = numbers(name + ".bias", shape.slice(0, 1), 0);
  return layer;
}

at::Tensor Layers::convolved(Layer layer, const at::Tensor& input,
                             std::int64_t stride, std::int64_t padding) const {
  return convolved(layer, input, {stride, stride}, {padding, padding});
}

at::Tensor Layers::convolved(Layer layer, const at::Tensor& input,
                             at::IntArrayRef stride,
                             at::IntArrayRef padding) const {
  std::optional<at::Tensor> bias;
  if (layer.bias != kNone) bias = tensors_[layer.bias];
  return at::conv2d(input, tensors_[layer.weight], bias, stride, padding);
}

Layers::BatchNorm Layers::batch_norm(const std::string& name,
                                     std::int64_t width) {
  BatchNorm norm{.name = name};
  norm.layer = normal(name, width);
  norm.mean = buffer(name + ".running_mean", at::zeros({width}));
  norm.variance = buffer(name + ".running_var", at::ones({width}));
  norm.batches =
      buffer(name + ".num_batches_tracked", at::zeros({}, at::kLong));
  return norm;
}

at::Tensor Layers::batch_normalised(const BatchNorm& norm,
                                    const at::Tensor& input,
                                    Statistics statistics) const {
  std::optional<at::Tensor> mean, variance;
  if (statistics != Statistics::batch)
    mean = tensors_[norm.mean], variance = tensors_[norm.variance];
  if (statistics == Statistics::keep) {
    if (input.numel() == input.size(1)) refuse_one_value(norm.name);
    const at::NoGradGuard no_graph;
    at::Tensor(tensors_[norm.batches]).add_(1);
  }
  return at::batch_norm(input, tensors_[norm.layer.weight],
                        tensors_[norm.layer.bias], mean, variance,
                        statistics != Statistics::kept, /*momentum=*/0.1,
                        /*eps=*/1e-5, at::globalContext().userEnabledCuDNN());
}

std::int64_t Layers::size() const {
  std::int64_t all = 0;
  for (const at::Tensor& tensor : tensors_) all += tensor.numel();
  for (const Parameter& buffer : buffers_) all -= buffer.value.numel();
  return all;
}

std::int64_t Layers::bytes() const {
  std::size_t all = 0;
  for (const at::Tensor& tensor : tensors_)
    if (tensor.defined()) all += tensor.nbytes();
  return static_cast<std::int64_t>(all);
}

}  // namespace penstock
