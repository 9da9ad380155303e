#include <algorithm>
#include <list>

#include "penstock/models/causal_lm/descriptor.h"
#include "penstock/run/model_folder.h"
#include "penstock/run/model_writer.h"

namespace penstock {
namespace {

/// A linear layer of a decoder's blocks. The embedding and the answers stay
/// unchanged, as transformers has it.
bool is_quantised(const std::string& name, const TensorView& view) {
  if (!name.starts_with("model.layers.") || view.shape.size() != 2)
    return false;
  return std::ranges::any_of(adaptable_layers(), [&](const std::string& layer) {
    return name.ends_with("." + layer + ".weight");
  });
}

/// As transformers writes and reads it.
Json quantization_of(const DecoderConfig& config, bool nested) {
  std::string dtype = "float32";
  for (const char* key : {"dtype", "torch_dtype"})
    if (const Json* found = config.document.find(key);
        found != nullptr && found->is_string())
      dtype = found->string();
  Json json;
  json["bnb_4bit_compute_dtype"] = dtype;
  json["bnb_4bit_quant_storage"] = "uint8";
  json["bnb_4bit_quant_type"] = "nf4";
  json["bnb_4bit_use_double_quant"] = nested;
  json["llm_int8_skip_modules"].push_back("lm_head");
  json["load_in_4bit"] = true;
  json["load_in_8bit"] = false;
  json["quant_method"] = "bitsandbytes";
  return json;
}

}  // namespace

WrittenModel quantize_model(const std::string& model, const std::string& out,
                            bool nested) {
  const DecoderConfig config = read_decoder_config(model);
  if (config.quantized)
    throw Error(ErrorKind::request,
                {.code = "model.weights",
                 .what = "cannot quantise a model",
                 .where = model,
                 .why = "its config.json says that its weights are quantised",
                 .next = "name the folder of the model without quantisation"});
  const MappedWeights weights(model);
  ModelWriter writer(weights, out);
  WrittenModel written;
  std::list<Nf4Tensors> shard;
  writer.write_weights(
      [&](const std::string& name,
          const TensorView& view) -> std::vector<NamedTensor> {
        if (!is_quantised(name, view)) return {{name, view}};
        std::vector<NamedTensor> tensors =
            shard.emplace_back(view, nested).named(name);
        ++written.layers;
        written.bytes_before += static_cast<std::int64_t>(view.bytes());
        for (const NamedTensor& one : tensors)
          written.bytes_after += static_cast<std::int64_t>(one.view.bytes());
        return tensors;
      },
      [&] { shard.clear(); });
  Json document = config.document;
  document["quantization_config"] = quantization_of(config, nested);
  writer.write_rest(document);
  return written;
}

}  // namespace penstock
