#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/tensor.h"
#include "penstock/models/causal_lm/descriptor.h"
#include "penstock/trainer/layers.h"
#include "penstock/trainer/models/causal_lm/attention.h"
#include "penstock/trainer/nf4/nf4_weight.h"

namespace penstock {

/// The keys and values of the tokens that one text has so far, by block: what
/// the next token sees of them need not be computed again.
struct SeenTokens {
  /// [1, most, groups, head] each, of which the first `length` are filled.
  std::vector<at::Tensor> keys = {}, values = {};
  std::int64_t length = 0, most = 0;
};

/// A decoder of the class Llama (Touvron et al., 2023), with the names and the
/// rules of transformers: modeling_llama.py, modeling_qwen3.py.
class DecoderNetwork {
 public:
  struct Options {
    DecoderConfig config;
    std::optional<Lora> lora;
    std::uint64_t seed = 0;
    Dtype precision = Dtype::float32;  ///< of products of matrices
    bool recompute = false;            ///< layers, for their gradients
    Quantization quantization = {};    ///< of weights beside adapters
  };

  /// `files`: null where the first weights are drawn. With adapters all else is
  /// fixed, and of `precision`.
  DecoderNetwork(const Options& options, const at::TensorOptions& where,
                 std::shared_ptr<const WeightFiles> files);

  /// `ids`, `positions`: int64 [rows, length] -> float32 [rows, length,
  /// hidden], from which logits() tells the next tokens.
  at::Tensor hidden(const at::Tensor& ids, const at::Tensor& positions,
                    const Sight& sight) const;
  /// The same of one row: all tokens of a text that begins, or one that follows
  /// those that `seen` has. They are added to it.
  at::Tensor hidden(const at::Tensor& ids, SeenTokens& seen) const;
  /// [.., hidden] -> float32 [.., vocabulary].
  at::Tensor logits(const at::Tensor& hidden) const;

  const std::vector<Parameter>& parameters() const {
    return layers_.parameters();
  }
  std::int64_t size() const { return layers_.size() + quantized_.size; }
  std::int64_t bytes() const { return layers_.bytes() + quantized_.bytes; }
  /// Of the weights that have four bits.
  struct Quantized {
    std::int64_t layers = 0, size = 0, bytes = 0;
  };
  const Quantized& quantized() const { return quantized_; }
  const DecoderConfig& config() const { return options_.config; }
  bool recomputes() const { return options_.recompute; }
  /// From here on layers are computed again for their gradients; false where
  /// they were already.
  bool begin_recompute() { return !std::exchange(options_.recompute, true); }

 private:
  /// A product of matrices, with its adapter where it has one.
  struct Product {
    Layers::Layer base;
    std::size_t down = Layers::kNone, up = Layers::kNone;
    std::shared_ptr<const Nf4Weight> nf4;  // in place of the base's weight
  };
  struct Block {
    std::size_t before = 0, after = 0;  // norms
    Product q, k, v, o, gate, up, down;
    std::size_t q_norm = Layers::kNone, k_norm = Layers::kNone;
  };
  void add_block(const std::string& name);
  Product product(const std::string& name, std::int64_t in, std::int64_t out,
                  bool bias);
  std::shared_ptr<const Nf4Weight> quantized(const std::string& name,
                                             std::int64_t in, std::int64_t out);
  at::Tensor base_of(const Product& product, const at::Tensor& x) const;
  std::size_t norm(const std::string& name, std::int64_t width);
  at::Tensor multiplied(const Product& product, const at::Tensor& x) const;
  at::Tensor normed(std::size_t weight, const at::Tensor& x) const;
  at::Tensor heads(const Product& product, std::size_t norm,
                   const at::Tensor& x) const;
  /// What the tokens of a row see: all keys and values up to theirs.
  using Keep = std::function<std::pair<at::Tensor, at::Tensor>(
      const at::Tensor& keys, const at::Tensor& values)>;
  at::Tensor through(const Block& block, const at::Tensor& x,
                     const Turns& turns, const Sight& sight,
                     const Keep& keep = {}) const;

  Options options_;
  const at::Device device_;
  Layers layers_;
  at::Tensor frequencies_;
  std::size_t embedding_ = 0, last_norm_ = 0, answer_ = 0;
  std::vector<Block> blocks_;
  Quantized quantized_;
};

}  // namespace penstock
