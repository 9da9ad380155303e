#include "penstock/trainer/models/causal_lm/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "penstock/trainer/autocast.h"
#include "penstock/trainer/nf4/nf4_linear.h"
#include "penstock/trainer/recompute.h"

namespace penstock {
namespace {

at::ScalarType type_of(Dtype precision) {
  if (precision == Dtype::bfloat16) return at::kBFloat16;
  return precision == Dtype::float16 ? at::kHalf : at::kFloat;
}

/// What PEFT puts before the names of adapters.
constexpr const char* kAdapter = "base_model.model.";

}  // namespace

DecoderNetwork::DecoderNetwork(const Options& options,
                               const at::TensorOptions& where,
                               std::shared_ptr<const WeightFiles> files)
    : options_(options),
      device_(where.device()),
      layers_(options.seed, where, files),
      frequencies_(frequencies_of(options.config.rope, options.config.head)
                       .to(device_)) {
  const DecoderConfig& config = options_.config;
  if (options_.lora) layers_.fix(type_of(options_.precision));
  embedding_ = layers_.numbers("model.embed_tokens.weight",
                               {config.vocabulary, config.hidden},
                               config.first_deviation);
  for (std::int64_t i = 0; i < config.layers; ++i)
    add_block("model.layers." + std::to_string(i) + ".");
  last_norm_ = norm(std::string("model.") + "norm", config.hidden);
  answer_ = config.tied ? embedding_
                        : layers_.numbers("lm_head.weight",
                                          {config.vocabulary, config.hidden},
                                          config.first_deviation);
  layers_.begun();
  if (files != nullptr)
    files->check_all_taken({"rotary_emb.inv_freq", "lm_head.weight"});
}

void DecoderNetwork::add_block(const std::string& name) {
  const DecoderConfig& c = options_.config;
  const std::string self = name + "self_attn.", mlp = name + "mlp.";
  Block block;
  block.before = norm(name + "input_layernorm", c.hidden);
  block.q =
      product(self + "q_proj", c.hidden, c.heads * c.head, c.looking_bias);
  block.k =
      product(self + "k_proj", c.hidden, c.groups * c.head, c.looking_bias);
  block.v =
      product(self + "v_proj", c.hidden, c.groups * c.head, c.looking_bias);
  block.o =
      product(self + "o_proj", c.heads * c.head, c.hidden, c.joining_bias);
  if (c.head_norms) {
    block.q_norm = norm(self + "q_norm", c.head);
    block.k_norm = norm(self + "k_norm", c.head);
  }
  block.after = norm(name + "post_attention_layernorm", c.hidden);
  block.gate = product(mlp + "gate_proj", c.hidden, c.inner, c.inner_bias);
  block.up = product(mlp + "up_proj", c.hidden, c.inner, c.inner_bias);
  block.down = product(mlp + "down_proj", c.inner, c.hidden, c.inner_bias);
  blocks_.push_back(block);
}

std::size_t DecoderNetwork::norm(const std::string& name, std::int64_t width) {
  return layers_.numbers(name + ".weight", {width}, 0, 1);
}

// Those that a file has in four bits stay so; others are quantised one by one,
// from where they are mapped.
std::shared_ptr<const Nf4Weight> DecoderNetwork::quantized(
    const std::string& name, std::int64_t in, std::int64_t out) {
  if (!options_.lora) return nullptr;
  const Quantization& asked = options_.quantization;
  std::optional<Nf4Parts> parts;
  if (layers_.files() != nullptr)
    parts = layers_.files()->take_nf4(name, {out, in});
  if (!parts && !asked.nf4) return nullptr;
  auto weight = std::make_shared<const Nf4Weight>(
      parts ? nf4_weight(*parts, device_)
            : nf4_weight(layers_.first_value(name, {out, in},
                                             options_.config.first_deviation),
                         asked.nested, device_));
  layers_.leave_place();
  ++quantized_.layers;
  quantized_.size += weight->size();
  quantized_.bytes += weight->bytes();
  return weight;
}

// An adapter begins as PEFT has it: what goes down is drawn, what comes up is
// 0, so that at first nothing is added.
DecoderNetwork::Product DecoderNetwork::product(const std::string& name,
                                                std::int64_t in,
                                                std::int64_t out, bool bias) {
  Product product;
  product.nf4 = quantized(name + ".weight", in, out);
  if (product.nf4 == nullptr)
    product.base.weight = layers_.numbers(name + ".weight", {out, in},
                                          options_.config.first_deviation);
  if (bias) product.base.bias = layers_.numbers(name + ".bias", {out}, 0);
  if (!options_.lora) return product;
  const Lora& lora = *options_.lora;
  const std::string last = name.substr(name.rfind('.') + 1);
  if (std::ranges::find(lora.targets, last) == lora.targets.end())
    return product;
  layers_.learn();
  product.down =
      layers_.adapter(kAdapter + name + ".lora_A.weight", {lora.r, in},
                      1 / std::sqrt(static_cast<double>(in)));
  product.up =
      layers_.adapter(kAdapter + name + ".lora_B.weight", {out, lora.r}, 0);
  layers_.fix(type_of(options_.precision));
  return product;
}

at::Tensor DecoderNetwork::base_of(const Product& product,
                                   const at::Tensor& x) const {
  if (product.nf4 == nullptr) return layers_.apply(product.base, x);
  std::optional<at::Tensor> bias;
  if (product.base.bias != Layers::kNone)
    bias = layers_.tensor(product.base.bias);
  const Dtype precision = options_.precision;
  const Dtype compute = options_.quantization.compute.value_or(precision);
  return nf4_linear(x, product.nf4, bias, type_of(compute))
      .to(type_of(precision));
}

// W x + s B A x with low rank A and B: LoRA (Hu et al. 2021). W does not learn.
at::Tensor DecoderNetwork::multiplied(const Product& product,
                                      const at::Tensor& x) const {
  at::Tensor all = base_of(product, x);
  if (product.down == Layers::kNone) return all;
  at::Tensor low = at::linear(x, layers_.tensor(product.down));
  return all +
         at::linear(low, layers_.tensor(product.up)) * options_.lora->scaling();
}

// x / sqrt(mean of x^2 + epsilon) times the weight (Zhang and Sennrich 2019),
// in float32 whatever the precision, as the models were trained.
at::Tensor DecoderNetwork::normed(std::size_t weight,
                                  const at::Tensor& x) const {
  return at::rms_norm(x.to(at::kFloat), {x.size(-1)}, layers_.tensor(weight),
                      options_.config.norm_epsilon);
}

at::Tensor DecoderNetwork::heads(const Product& product, std::size_t norm,
                                 const at::Tensor& x) const {
  at::Tensor all =
      multiplied(product, x).unflatten(-1, {-1, options_.config.head});
  return norm == Layers::kNone ? all : normed(norm, all).to(all.scalar_type());
}

// x + attention(norm(x)), then + down(silu(gate) * up) of norm: the block of
// Llama, whose residual stream stays in float32.
at::Tensor DecoderNetwork::through(const Block& block, const at::Tensor& x,
                                   const Turns& turns, const Sight& sight,
                                   const Keep& keep) const {
  const Autocast cast(device_, options_.precision);
  at::Tensor seen = normed(block.before, x);
  at::Tensor keys = turned(heads(block.k, block.k_norm, seen), turns);
  at::Tensor values = heads(block.v, Layers::kNone, seen);
  if (keep) std::tie(keys, values) = keep(keys, values);
  at::Tensor joined = attend(turned(heads(block.q, block.q_norm, seen), turns),
                             keys, values, sight);
  at::Tensor middle = x + multiplied(block.o, joined.flatten(2));
  at::Tensor inner = normed(block.after, middle);
  return middle +
         multiplied(block.down, at::silu(multiplied(block.gate, inner)) *
                                    multiplied(block.up, inner));
}

at::Tensor DecoderNetwork::hidden(const at::Tensor& ids,
                                  const at::Tensor& positions,
                                  const Sight& sight) const {
  at::Tensor x = layers_.rows_of(embedding_, ids).to(at::kFloat);
  const Turns turns = turns_of(frequencies_, positions);
  for (const Block& block : blocks_) {
    if (options_.recompute)
      x = recomputed(
          [this, &block, turns, sight](const at::Tensor& in, bool) {
            return through(block, in, turns, sight);
          },
          x);
    else
      x = through(block, x, turns, sight);
  }
  return normed(last_norm_, x);
}

at::Tensor DecoderNetwork::hidden(const at::Tensor& ids,
                                  SeenTokens& seen) const {
  const std::int64_t begin = seen.length, count = ids.size(1);
  PENSTOCK_ASSERT(begin == 0 || count == 1, "one token follows at a time");
  PENSTOCK_ASSERT(begin + count <= seen.most, "there is room for the token");
  seen.keys.resize(blocks_.size());
  seen.values.resize(blocks_.size());
  at::Tensor x = layers_.rows_of(embedding_, ids).to(at::kFloat);
  const Turns turns =
      turns_of(frequencies_,
               at::arange(begin, begin + count, ids.options()).unsqueeze(0));
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const auto with = [&](at::Tensor& all, const at::Tensor& more) {
      if (!all.defined())
        all = at::empty({1, seen.most, more.size(2), more.size(3)},
                        more.options());
      all.slice(1, begin, begin + count).copy_(more);
      return all.slice(1, 0, begin + count);
    };
    x = through(blocks_[b], x, turns, {},
                [&](const at::Tensor& keys, const at::Tensor& values) {
                  return std::pair(with(seen.keys[b], keys),
                                   with(seen.values[b], values));
                });
  }
  seen.length += count;
  return normed(last_norm_, x);
}

at::Tensor DecoderNetwork::logits(const at::Tensor& hidden) const {
  const Autocast cast(device_, options_.precision);
  return at::linear(hidden, layers_.tensor(answer_)).to(at::kFloat);
}

}  // namespace penstock
