#include "penstock/models/causal_lm/descriptor.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace penstock {
namespace {

void read_targets(Spec& spec, const SettingSchema& setting, Lora& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr) return;
  if (given->is_string() && given->string() == "all-linear") {
    to.targets = adaptable_layers();
    return;
  }
  to.targets = spec.names(setting.key);
  for (const std::string& name : to.targets)
    if (std::ranges::find(adaptable_layers(), name) == adaptable_layers().end())
      spec.refuse(setting.key, "there is no layer '" + name + "'",
                  did_you_mean(name, adaptable_layers()));
}

Json targets_rule() {
  Json words, names;
  words["const"] = "all-linear";
  names["type"] = "array";
  names["minItems"] = 1;
  names["items"]["enum"] = settings::list_of(adaptable_layers());
  Json rule;
  rule["oneOf"].push_back(std::move(words));
  rule["oneOf"].push_back(std::move(names));
  rule["description"] =
      "Layers that get an adapter, or \"all-linear\" for all linear layers";
  return rule;
}

const SettingsTable<Lora>& lora_settings() {
  static const SettingsTable<Lora> table =
      SettingsTable<Lora>()
          .integer("r", &Lora::r, 1, 1 << 14, "Rank of an adapter")
          .number(
              "alpha", &Lora::alpha, 1e-6, 1e6,
              "Scale of the adapters: their output is multiplied by alpha / r")
          .boolean("use_rslora", &Lora::use_rslora,
                   "Whether to multiply by alpha / sqrt(r) instead")
          .setting(
              "target_modules", targets_rule(), read_targets,
              [](const Lora& from) { return settings::list_of(from.targets); });
  return table;
}

Json lora_rule() {
  Json rule = lora_settings().schema();
  rule["description"] =
      "Trains LoRA adapters instead of the weights, and saves only these. "
      "Default: all weights are trained";
  return rule;
}

void read_lora(Spec& spec, const SettingSchema& setting, CausalLm& to) {
  if (spec.raw(setting.key) == nullptr) return;
  to.lora = lora_settings().parse(spec.section(setting.key));
}

const SettingsTable<Quantization>& quantization_settings() {
  static const SettingsTable<Quantization> table =
      SettingsTable<Quantization>()
          .choice("quantize", &Quantization::nf4,
                  {{"none", false}, {"nf4", true}},
                  "nf4: the linear layers have four-bit weights "
                  "(bitsandbytes' NF4, blocks of 64), beside LoRA adapters. "
                  "none: as \"path\" has them")
          .choice("bnb_4bit_compute_dtype", &Quantization::compute,
                  {{"float32", Dtype::float32},
                   {"bfloat16", Dtype::bfloat16},
                   {"float16", Dtype::float16}},
                  "Type in which four-bit weights are multiplied. Default: "
                  "that of train.precision")
          .boolean("bnb_4bit_use_double_quant", &Quantization::nested,
                   "Whether the scales of weights that are quantised have "
                   "eight bits instead of 32");
  return table;
}

const SettingsTable<CausalLm>& causal_lm_settings() {
  static const SettingsTable<CausalLm> table =
      SettingsTable<CausalLm>()
          .text("tokens", &CausalLm::tokens,
                "Field of kind tokens. Default: the only one")
          .text("config", &CausalLm::config,
                "Path of a Hugging Face config.json, or of its folder. "
                "Default: the folder of \"path\"")
          .setting("lora", lora_rule(), read_lora,
                   [](const CausalLm& from) {
                     return from.lora ? lora_settings().shown(*from.lora)
                                      : Json();
                   })
          .inside(&CausalLm::quantization, quantization_settings())
          .integer("seed", &CausalLm::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the initial weights that no file provides")
          .integer("sample_texts", &CausalLm::sample_texts, 0, 64,
                   "Number of texts that the model writes at each validation, "
                   "from the first tokens of the first validation rows. They "
                   "are in report.json and on the page of the run. 0: none")
          .integer("sample_tokens", &CausalLm::sample_tokens, 1, 4096,
                   "Greatest number of tokens of such a text");
  return table;
}

bool holds_tokens(const Field& field) {
  return field.kind->facts().tokens.has_value();
}

const Field& checked_field(const Spec& spec, const CausalLm& settings,
                           const std::vector<Field>& fields) {
  if (!settings.tokens.empty()) {
    const Field& named = field_named(spec, "tokens", settings.tokens, fields);
    if (holds_tokens(named)) return named;
    spec.refuse("tokens", "field '" + named.name + "' does not hold tokens",
                "name a field of kind \"tokens\"");
  }
  const Field* only = tokens_field_of(settings, fields);
  if (only == nullptr)
    spec.refuse("tokens",
                "the job does not have exactly one field of kind \"tokens\"",
                "add such a field, or name one of them");
  return *only;
}

void check_quantization(const CausalLm& settings, const DecoderConfig& config) {
  if (settings.lora || (!settings.quantization.nf4 && !config.quantized))
    return;
  throw Error(
      ErrorKind::request,
      {.code = "model.quantize_needs_lora",
       .what = "cannot train four-bit weights",
       .where = settings.quantization.nf4 ? "model.quantize" : "model.path",
       .why = settings.quantization.nf4
                  ? "\"quantize\" is \"nf4\" and \"lora\" is missing"
                  : "the model's weights are quantised and \"lora\" is missing",
       .next = "train adapters beside them: set \"lora\": {}, or use the "
               "model without quantisation"});
}

void check_fields(const Spec& spec, const ModelSpec& model,
                  const std::vector<Field>& fields) {
  const CausalLm& settings = causal_lm_of(model);
  const Field& field = checked_field(spec, settings, fields);
  if (settings.config.empty() && model.path.empty())
    spec.refuse(
        "config", "both \"config\" and \"path\" are missing",
        "name the config.json of a model, which then starts from random "
        "weights, or set \"path\" to the folder of a model with its weights");
  const DecoderConfig config = config_of(model);
  check_quantization(settings, config);
  const std::int64_t ids = field.kind->facts().tokens->vocab_size;
  if (ids == 0)
    spec.refuse(
        "tokens",
        "field '" + field.name + "' does not set the size of its vocabulary",
        "set its \"vocab_size\" to " + std::to_string(config.vocabulary) +
            ", the model's size");
  if (ids > config.vocabulary)
    spec.refuse(
        "config",
        "the model knows " + std::to_string(config.vocabulary) +
            " tokens, but field '" + field.name + "' has ids below " +
            std::to_string(ids),
        "use the model's tokenizer, or a model with a larger vocab_size");
}

}  // namespace

const std::vector<std::string>& adaptable_layers() {
  static const std::vector<std::string> names = {
      "q_proj",    "k_proj",  "v_proj",   "o_proj",
      "gate_proj", "up_proj", "down_proj"};
  return names;
}

double Lora::scaling() const {
  const auto rank = static_cast<double>(r);
  return alpha / (use_rslora ? std::sqrt(rank) : rank);
}

ModelKind causal_lm_model() {
  return {
      .name = "causal_lm",
      .about =
          "Predicts the next token of a text, with decoders of the classes "
          "Llama, Mistral, Qwen2 and Qwen3",
      .settings = with_shared(SettingsTable<ModelSpec>({.kind = "causal_lm"})
                                  .own(&ModelSpec::own, causal_lm_settings())),
      .check = check_fields,
      .switches = {"precision", "tf32", "graphs", "accumulate", "ema",
                   "label_smoothing", "gradient_checkpointing", "attention"},
      .metrics =
          [](const ModelSpec&, const std::vector<Field>&) {
            return std::vector<std::string>{"loss", "perplexity"};
          },
      .reads_path = true};
}

const CausalLm& causal_lm_of(const ModelSpec& model) {
  const CausalLm* settings = std::any_cast<CausalLm>(&model.own);
  PENSTOCK_ASSERT(settings != nullptr, "the model is a causal_lm");
  return *settings;
}

DecoderConfig config_of(const ModelSpec& model) {
  const CausalLm& settings = causal_lm_of(model);
  if (!settings.config.empty()) return read_decoder_config(settings.config);
  std::filesystem::path path = model.path;
  if (!std::filesystem::is_directory(path)) path = path.parent_path();
  return read_decoder_config((path / "config.json").string());
}

const Field* tokens_field_of(const CausalLm& settings,
                             const std::vector<Field>& fields) {
  const Field* found = nullptr;
  for (const Field& field : fields) {
    if (!settings.tokens.empty() && field.name == settings.tokens)
      return &field;
    if (!holds_tokens(field)) continue;
    if (found != nullptr && settings.tokens.empty()) return nullptr;
    found = &field;
  }
  return settings.tokens.empty() ? found : nullptr;
}

}  // namespace penstock
