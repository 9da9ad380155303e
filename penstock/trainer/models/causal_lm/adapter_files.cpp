#include "penstock/trainer/models/causal_lm/adapter_files.h"

#include <filesystem>

namespace penstock {

Json adapter_config(const Lora& lora, const std::string& base) {
  Json json;
  json["alpha_pattern"] = Json::Object{};
  std::string path = base;
  if (!base.empty() && !std::filesystem::is_directory(base))
    path = std::filesystem::path(base).parent_path().string();
  json["base_model_name_or_path"] = base.empty() ? Json() : Json(path);
  json["bias"] = "none";
  json["fan_in_fan_out"] = false;
  json["inference_mode"] = true;
  json["init_lora_weights"] = true;
  json["lora_alpha"] = lora.alpha;
  json["lora_dropout"] = 0.0;
  json["modules_to_save"] = nullptr;
  json["peft_type"] = "LORA";
  json["r"] = lora.r;
  json["rank_pattern"] = Json::Object{};
  json["target_modules"] = settings::list_of(lora.targets);
  json["task_type"] = "CAUSAL_LM";
  json["use_dora"] = false;
  json["use_rslora"] = lora.use_rslora;
  return json;
}

WeightsForm adapter_form(const Lora& lora, const std::string& base) {
  return {.file = "adapter_model.safetensors",
          .beside = {{"adapter_config.json",
                      adapter_config(lora, base).dump(2) + "\n"}},
          .adapter = true};
}

std::string model_config(const DecoderConfig& config) {
  Json json = config.document;
  for (const char* key : {"torch_dtype", "dtype"})
    if (json.find(key) != nullptr) json[key] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace penstock
