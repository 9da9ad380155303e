#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/models/causal_lm/config.h"
#include "penstock/models/model.h"

namespace penstock {

/// Adapters of low rank beside weights that stay unchanged (Hu et al.,
/// "LoRA", 2021), with the names of the library PEFT.
struct Lora {
  std::int64_t r = 8;
  double alpha = 16;
  bool use_rslora = false;  ///< alpha / sqrt(r), not alpha / r
  std::vector<std::string> targets = {"q_proj", "v_proj"};

  double scaling() const;
};

/// The linear layers of a block, as all such decoders name them: those that
/// adapters may stand beside, and that are quantised.
const std::vector<std::string>& adaptable_layers();

/// Weights of four bits beside adapters (Dettmers et al., "QLoRA", 2023), with
/// the names of the library bitsandbytes. Weights that a file has in four bits
/// stay unchanged.
struct Quantization {
  bool nf4 = false;  ///< linear layers are quantised while they are read
  /// In which they are multiplied; missing: that of `train.precision`.
  std::optional<Dtype> compute;
  bool nested = true;  ///< their scales have eight bits
};

/// The next token of a text, from those before it.
struct CausalLm {
  std::string tokens;      ///< a field; empty: the only one of kind `tokens`
  std::string config;      ///< config.json or its folder; empty: that of `path`
  std::uint64_t seed = 0;  ///< of the first weights that no file has
  std::optional<Lora> lora;
  /// How many of the validation rows are continued at each validation, and by
  /// how many tokens at most.
  std::int64_t sample_texts = 3, sample_tokens = 32;
  Quantization quantization;
};

ModelKind causal_lm_model();

/// The settings of a model of this kind; an internal error for another kind's.
const CausalLm& causal_lm_of(const ModelSpec& model);

/// Of its `config`, or of the folder of its `path`.
DecoderConfig config_of(const ModelSpec& model);

/// The field of tokens, by the setting or the only one; null: none.
const Field* tokens_field_of(const CausalLm& settings,
                             const std::vector<Field>& fields);

}  // namespace penstock
