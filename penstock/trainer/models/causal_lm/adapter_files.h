#pragma once

#include <string>

#include "penstock/models/causal_lm/descriptor.h"
#include "penstock/session/session.h"

namespace penstock {

// The files that other programs load a model or its adapters from.

/// `adapter_config.json`, as PEFT writes it; `base` is the path of the weights
/// that the adapters belong to.
Json adapter_config(const Lora& lora, const std::string& base);
/// `adapter_model.safetensors` and that file: PeftModel.from_pretrained() takes
/// their folder.
WeightsForm adapter_form(const Lora& lora, const std::string& base);

/// The `config.json` of weights that are float32 now.
std::string model_config(const DecoderConfig& config);

}  // namespace penstock
