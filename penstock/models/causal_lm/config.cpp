#include "penstock/models/causal_lm/config.h"

#include <algorithm>
#include <filesystem>

namespace penstock {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 31;

/// Members that are null stand for their defaults.
Json without_nulls(const Json& json) {
  Json left{Json::Object{}};
  for (const auto& [key, value] : json.object())
    if (!value.is_null()) left[key] = value;
  return left;
}

Json read_document(const std::filesystem::path& path) {
  std::string why;
  try {
    Json json = Json::parse(real_files().read(path), path.string());
    if (json.is_object()) return json;
    why = "the file holds " + std::string(json.type_name()) +
          ", expected an object";
  } catch (const Error& error) {
    why = error.parts().why;
  }
  throw Error(ErrorKind::request,
              {.code = "model.config",
               .what = "cannot read the configuration of the model",
               .where = path.string(),
               .why = std::move(why),
               .next = "name the config.json of a Hugging Face model, or its "
                       "folder, as \"model.config\""});
}

DecoderConfig::Rope::Bands read_bands(Spec& spec) {
  DecoderConfig::Rope::Bands bands;
  bands.low = spec.number("low_freq_factor", bands.low, 1e-6, 1e6);
  bands.high = spec.number("high_freq_factor", bands.high, 1e-6, 1e6);
  bands.length = spec.number("original_max_position_embeddings", bands.length,
                             1, static_cast<double>(kMany));
  if (bands.high <= bands.low)
    spec.refuse("high_freq_factor", "the value is not above low_freq_factor",
                "use the file that the model's authors published");
  return bands;
}

/// `rope_theta` and `rope_scaling` of older files are `rope_parameters` in
/// those of transformers 5.
DecoderConfig::Rope read_rope(Spec& spec) {
  DecoderConfig::Rope rope;
  rope.theta = spec.number("rope_theta", rope.theta, 1, 1e12);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* given = spec.raw(key);
    if (given == nullptr) continue;
    if (!given->is_object())
      spec.refuse(key, "found " + given->dump() + ", expected an object",
                  "use the file that the model's authors published");
    const Json held = without_nulls(*given);
    Spec inner(held, spec.path_of(key));
    rope.theta = inner.number("rope_theta", rope.theta, 1, 1e12);
    const std::string type =
        inner.text("rope_type", inner.text("type", "default"));
    if (type == "default") continue;
    if (type != "linear" && type != "llama3")
      inner.refuse(
          "rope_type",
          "found \"" + type + "\", expected one of default, linear, llama3",
          "this scaling of positions is not supported: use another model");
    rope.factor = inner.number("factor", std::nullopt, 1, 1e6);
    if (type == "llama3") rope.bands = read_bands(inner);
  }
  return rope;
}

void refuse_sliding(Spec& spec, const std::string& type) {
  const bool asked = spec.boolean("use_sliding_window", type == "mistral");
  if (asked && spec.has("sliding_window"))
    spec.refuse("sliding_window", "sliding-window attention is not supported",
                "use a model without it, or set it to null if no document is "
                "longer than the window");
  const Json* layers = spec.raw("layer_types");
  if (layers == nullptr || !layers->is_array()) return;
  for (const Json& layer : layers->array())
    if (layer != Json("full_attention"))
      spec.refuse("layer_types",
                  "found " + layer.dump() + ", expected \"full_attention\"",
                  "use a model whose layers all attend to the whole document");
}

/// What would train another model than this one.
void refuse_unknown(Spec& spec) {
  if (spec.number("attention_dropout", 0, 0, 1) != 0)
    spec.refuse("attention_dropout", "dropout is not supported",
                "set it to 0 to train without dropout");
}

/// Whether the files have four-bit weights, as transformers says it of
/// bitsandbytes. Its defaults count: fp4 where no type is named.
bool read_quantization(Spec& spec) {
  const Json* given = spec.raw("quantization_config");
  if (given == nullptr) return false;
  const std::string next =
      "use the model without quantisation, or one that bitsandbytes has "
      "quantised to nf4 (penstock quantize writes it)";
  if (!given->is_object())
    spec.refuse("quantization_config",
                "found " + given->dump() + ", expected an object", next);
  const Json held = without_nulls(*given);
  Spec inner(held, spec.path_of("quantization_config"));
  auto expect = [&](const char* key, const char* otherwise,
                    const std::string& expected) {
    const std::string found = inner.text(key, otherwise);
    if (found != expected)
      inner.refuse(key,
                   "quantised weights of \"" + found +
                       "\" are not supported, only of \"" + expected + "\"",
                   next);
  };
  expect("quant_method", "", "bitsandbytes");
  if (inner.boolean("load_in_8bit", false) ||
      !inner.boolean("load_in_4bit", false))
    inner.refuse("load_in_8bit",
                 "quantised weights of eight bits (int8) are not supported",
                 next);
  expect("bnb_4bit_quant_type", "fp4", "nf4");
  expect("bnb_4bit_quant_storage", "uint8", "uint8");
  return true;
}

void read_sizes(Spec& spec, DecoderConfig& config) {
  auto size = [&](const char* key, std::optional<std::int64_t> otherwise) {
    return spec.integer(key, otherwise, 1, kMany);
  };
  config.vocabulary = size("vocab_size", std::nullopt);
  config.hidden = size("hidden_size", std::nullopt);
  config.inner = size("intermediate_size", std::nullopt);
  config.layers = size("num_hidden_layers", std::nullopt);
  config.heads = size("num_attention_heads", std::nullopt);
  config.groups = size("num_key_value_heads", config.heads);
  config.head =
      size("head_dim", std::max<std::int64_t>(1, config.hidden / config.heads));
  if (config.heads % config.groups != 0)
    spec.refuse("num_key_value_heads",
                "found " + std::to_string(config.groups) +
                    ", which does not divide num_attention_heads, " +
                    std::to_string(config.heads),
                "use the file that the model's authors published");
  if (config.head % 2 != 0)
    spec.refuse("head_dim",
                "found " + std::to_string(config.head) +
                    ", expected an even number: rotary positions rotate pairs",
                "use the file that the model's authors published");
}

}  // namespace

DecoderConfig read_decoder_config(const std::string& path) {
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(file)) file /= "config.json";
  DecoderConfig config{.document = read_document(file)};
  const Json held = without_nulls(config.document);
  Spec spec(held, file.string());
  config.model_type =
      spec.choice("model_type", {"llama", "mistral", "qwen2", "qwen3"});
  const std::string& type = config.model_type;
  refuse_sliding(spec, type);
  refuse_unknown(spec);
  config.quantized = read_quantization(spec);
  spec.choice("hidden_act", "silu", {"silu"});
  read_sizes(spec, config);
  config.norm_epsilon = spec.number("rms_norm_eps", 1e-6, 0, 1);
  config.tied = spec.boolean("tie_word_embeddings", false);
  config.rope = read_rope(spec);
  const bool bias = spec.boolean("attention_bias", false);
  config.looking_bias = type == "qwen2" || (type != "mistral" && bias);
  config.joining_bias = (type == "llama" || type == "qwen3") && bias;
  config.inner_bias = type == "llama" && spec.boolean("mlp_bias", false);
  config.head_norms = type == "qwen3";
  config.first_deviation = spec.number("initializer_range", 0.02, 0, 10);
  return config;
}

std::int64_t multiplied_weights(const DecoderConfig& config) {
  const std::int64_t attention =
      config.hidden * config.head * 2 * (config.heads + config.groups);
  const std::int64_t inner = 3 * config.hidden * config.inner;
  return config.layers * (attention + inner) +
         config.hidden * config.vocabulary;
}

}  // namespace penstock
