#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/base/base.h"

namespace penstock {

/// Sizes and rules of a decoder, as a `config.json` of Hugging Face has them.
struct DecoderConfig {
  std::string model_type;  ///< "llama", "mistral", "qwen2" or "qwen3"
  std::int64_t vocabulary = 0, hidden = 0, inner = 0, layers = 0;
  std::int64_t heads = 0;
  std::int64_t groups = 0;  ///< heads of keys and values
  std::int64_t head = 0;  ///< numbers of a head; heads x head may be no hidden
  double norm_epsilon = 1e-6;
  bool tied = false;          ///< the answers share the weights of the tokens
  bool looking_bias = false;  ///< of q, k and v
  bool joining_bias = false;  ///< of o
  bool inner_bias = false;    ///< of gate, up and down
  bool head_norms = false;    ///< queries and keys are normalised, by head
  bool quantized = false;     ///< its files have four-bit weights
  double first_deviation = 0.02;  ///< of weights that are drawn

  /// How positions turn queries and keys (Su et al., "RoFormer", 2021).
  struct Rope {
    double theta = 10000;
    double factor = 1;  ///< positions are divided by it
    /// Of Llama 3: slow turns alone are divided, those in between partly.
    struct Bands {
      double low = 1, high = 4;  ///< turns within `length` positions
      double length = 8192;
    };
    std::optional<Bands> bands;
  };
  Rope rope;
  Json document;  ///< as it was read
};

/// Reads `path`, a config.json or the folder that holds it. Throws
/// Error(request), code model.config, for one that is not there, and what Spec
/// throws for a value that no such decoder has: other architectures, sliding
/// windows, other ways to stretch positions, other quantised weights than those
/// that bitsandbytes writes as nf4.
DecoderConfig read_decoder_config(const std::string& path);

/// Weights of the products of matrices that a token goes through.
std::int64_t multiplied_weights(const DecoderConfig& config);

}  // namespace penstock
