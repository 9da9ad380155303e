#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/trainer/parameter.h"
#include "penstock/trainer/weight_files.h"

namespace penstock {

/// The parameters of a network and the layers that they make. A network adds
/// its layers once and then applies them.
class Layers {
 public:
  /// Weight and bias, by their place among the tensors.
  struct Layer {
    std::size_t weight = 0, bias = kNone;
  };
  static constexpr std::size_t kNone = SIZE_MAX;  ///< it has no bias

  /// The first weights depend on `seed` and on the order of the layers alone,
  /// whatever the device. Those of `files`, where there are such, must hold
  /// what is not drawn again; a network lets go of them by begun().
  Layers(std::uint64_t seed, const at::TensorOptions& options,
         std::shared_ptr<const WeightFiles> files = nullptr)
      : seed_(seed), options_(options), files_(std::move(files)) {}

  Layer linear(const std::string& name, std::int64_t in, std::int64_t out,
               bool bias = true);
  Layer normal(const std::string& name, std::int64_t width);
  /// A vector of `width` numbers for each of `rows` classes; its place.
  std::size_t table(const std::string& name, std::int64_t rows,
                    std::int64_t width);
  /// Numbers of a normal distribution about 0, about a constant with 0.
  std::size_t numbers(const std::string& name, at::IntArrayRef shape,
                      double deviation, double about = 0);
  /// Numbers that are as likely within +-`bound`.
  std::size_t uniform(const std::string& name, at::IntArrayRef shape,
                      double bound);
  /// The same, but never of the files.
  std::size_t adapter(const std::string& name, at::IntArrayRef shape,
                      double bound);
  /// The first value of a weight that the network keeps in another form: mapped
  /// from a file, or drawn. Call leave_place() afterwards.
  at::Tensor first_value(const std::string& name, at::IntArrayRef shape,
                         double deviation) const;
  /// Adds an empty tensor for a weight that is kept elsewhere: what is drawn
  /// after it depends on its place.
  void leave_place() { tensors_.emplace_back(); }
  /// Null without files, and once begun() was called.
  const WeightFiles* files() const { return files_.get(); }
  /// What is part of the model's state, but not learned.
  std::size_t buffer(const std::string& name, const at::Tensor& value);
  /// Makes the weight of a layer 0, where it was drawn: before anything is
  /// learned, it gives 0.
  void zero(Layer layer);

  /// From here on what is added is not learned, and no part of the state; those
  /// of two dimensions or more have type `dtype`.
  void fix(at::ScalarType dtype);
  void learn() { fixed_ = false; }
  void begun() { files_.reset(); }

  at::Tensor apply(Layer layer, const at::Tensor& input) const;
  /// Over the last dimension.
  at::Tensor normalised(Layer layer, const at::Tensor& input,
                        double epsilon = 1e-5) const;
  /// Weights [out, in, kernel, kernel] of a convolution, drawn as He et al.
  /// (2015) have it: for what comes out.
  Layer convolution(const std::string& name, at::IntArrayRef shape, bool bias);
  at::Tensor convolved(Layer layer, const at::Tensor& input,
                       std::int64_t stride = 1, std::int64_t padding = 0) const;
  at::Tensor convolved(Layer layer, const at::Tensor& input,
                       at::IntArrayRef stride, at::IntArrayRef padding) const;
  /// Batch normalisation (Ioffe and Szegedy, 2015), with torch's names.
  struct BatchNorm {
    std::string name;
    Layer layer;
    std::size_t mean = 0, variance = 0, batches = 0;  // buffers
  };
  /// Which statistics are used: those of the batch, which are kept or not, or
  /// those that were kept.
  enum class Statistics : std::uint8_t { keep, batch, kept };
  BatchNorm batch_norm(const std::string& name, std::int64_t width);
  /// Throws Error(transform), code train.not_finite, where statistics are to be
  /// kept and a channel has a single value: its variance is not a number.
  at::Tensor batch_normalised(const BatchNorm& norm, const at::Tensor& input,
                              Statistics statistics) const;
  /// Convolutions that are added from here on have channels last in memory.
  void channels_last(bool on) { channels_last_ = on; }

  /// The vectors of a table that belong to `classes`, int64: [..., width].
  at::Tensor rows_of(std::size_t table, const at::Tensor& classes) const;
  /// Shares memory with the layers.
  const at::Tensor& tensor(std::size_t place) const { return tensors_[place]; }

  /// What is learned, in the order in which it was added. They share memory
  /// with the layers.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Parameter>& buffers() const { return buffers_; }
  /// Numbers of all weights, learned or fixed.
  std::int64_t size() const;
  std::int64_t bytes() const;  ///< of all, buffers too

 private:
  using Draw = std::function<at::Tensor()>;
  std::size_t add(const std::string& name, at::IntArrayRef shape,
                  const Draw& draw);
  at::Tensor drawn(at::IntArrayRef shape,
                   const std::function<double(Random&)>& draw) const;

  std::uint64_t seed_;
  at::TensorOptions options_;
  std::shared_ptr<const WeightFiles> files_;
  bool fixed_ = false, channels_last_ = false;
  at::ScalarType fixed_dtype_ = at::kFloat;
  std::vector<at::Tensor> tensors_;
  std::vector<Parameter> parameters_, buffers_;
};

}  // namespace penstock
