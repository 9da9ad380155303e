#include <cstdint>

#include "penstock/job/manifest_rules.h"

// Keys of language models: those of Axolotl, LLaMA-Factory, PEFT, TRL and
// bitsandbytes.

namespace penstock {
namespace {

constexpr const char* kOtherBits =
    "quantised weights are those of nf4 (bitsandbytes), without its further "
    "settings";

const std::vector<ManifestEntry> kOfText = {
    // Language models: the model and its adapters.
    {{"base_model", "model_name_or_path"}, manifest_base_model, true},
    {{"model_type", "tokenizer_type"},
     no_effect("config.json and tokenizer.json say which classes they need")},
    {{"encoder_type"},
     no_effect("the job's section 'model' says which model it is")},
    {{"tokenizer_config", "tokenizer_name_or_path"},
     no_effect("it names the folder of the tokenizer")},
    {{"tokenizer_use_fast", "use_fast_tokenizer", "tokenizer_legacy"},
     no_effect("the tokenizer is Penstock's own, with the same ids")},
    {{"trust_remote_code"}, not_here("code of a model's folder is never run")},
    {{"model_revision"}, no_effect("the model is read from a folder")},
    {{"adapter", "finetuning_type"}, manifest_adapter, true},
    {{"lora_r", "lora_rank", "r"}, of_lora("r")},
    {{"lora_alpha"}, of_lora("alpha")},
    {{"lora_dropout"}, not_here("adapters have no dropout")},
    {{"lora_target_modules", "lora_target", "target_modules",
      "lora_target_linear"},
     manifest_lora_targets},
    {{"peft_use_rslora", "use_rslora"}, of_lora("use_rslora")},
    {{"peft_use_dora", "use_dora", "pissa_init", "pissa_iter", "pissa_convert",
      "peft_init_lora_weights", "lora_layers_to_transform",
      "peft_layers_to_transform", "layers_to_transform", "rank_pattern",
      "alpha_pattern", "loftq_config"},
     not_here("adapters are plain LoRA's")},
    {{"init_lora_weights"},
     always(true, "adapters begin as LoRA's do: they change nothing")},
    {{"lora_modules_to_save", "modules_to_save", "additional_target",
      "lora_bias", "bias"},
     not_here("only the adapters learn where there are adapters")},
    {{"lora_fan_in_fan_out", "fan_in_fan_out"},
     not_here("layers here keep their weights as [outputs, inputs]")},
    {{"peft_type", "task_type"},
     no_effect("adapters are LoRA's, of a causal language model")},
    {{"lora_model_dir", "adapter_name_or_path", "adapter_folder",
      "create_new_adapter", "merge_lora"},
     not_here("each run starts with new adapters")},
    {{"load_in_4bit", "quantization_bit"}, manifest_four_bits},
    {{"load_in_8bit"},
     not_here("weights of eight bits (int8) are not supported")},
    {{"bnb_4bit_quant_type", "quantization_type"}, manifest_four_bit_type},
    {{"bnb_4bit_use_double_quant", "double_quantization"},
     manifest_double_quantization},
    {{"bnb_4bit_compute_dtype"}, manifest_compute_dtype},
    {{"quantization_method", "quant_method", "bnb_4bit_quant_storage",
      "bnb_config_kwargs", "llm_int8_threshold", "llm_int8_skip_modules",
      "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "gptq",
      "gptq_disable_exllama"},
     not_here(kOtherBits)},
    {{"freeze_trainable_layers", "freeze_trainable_modules",
      "freeze_extra_modules", "unfrozen_parameters", "use_galore", "use_apollo",
      "use_badam"},
     not_here("all weights learn, or adapters")},
    {{"rope_scaling", "rope_theta"},
     not_here("positions are stretched as the model's config.json says")},
    {{"resize_vocab", "resize_token_embeddings_to_32x", "tokens",
      "special_tokens", "added_tokens_overrides"},
     not_here("the model keeps the tokens that it has")},
    {{"mixture_of_depths", "moe_aux_loss_coef", "upcast_layernorm",
      "upcast_lmhead_output"},
     not_here("models are computed as transformers computes them")},
    // Language models: data.
    {{"datasets", "pretraining_dataset"}, manifest_data_sets, true},
    {{"dataset"}, manifest_named_data_set, true},
    {{"dataset_dir"}, no_effect("'dataset' is looked up there")},
    {{"test_datasets", "eval_dataset"},
     not_here("rows are held out of the source: write 'val_set_size' or a "
              "section 'split'")},
    {{"mix_strategy", "interleave_probs"},
     not_here("write 'sources' with weights into a job file")},
    {{"shuffle_merged_datasets"},
     always(true, "all rows are shuffled together")},
    {{"max_seq_length", "max_length", "sequence_len", "cutoff_len",
      "model_max_length", "block_size"},
     of_fields("tokens", "max_length")},
    {{"sample_packing", "packing"}, manifest_packing},
    {{"neat_packing", "eval_sample_packing", "sample_packing_group_size",
      "sample_packing_bin_size", "multipack_real_batches",
      "pad_to_sequence_len"},
     no_effect("documents of a row never see each other, and a row is as "
               "long as 'max_length'")},
    {{"sample_packing_eff_est", "total_num_tokens"},
     no_effect("it is measured")},
    {{"chat_template", "chat_template_jinja", "template", "enable_thinking",
      "default_system"},
     not_here("messages are rendered by the chat template of the tokenizer; "
              "'chat_template' of a field names another file")},
    {{"train_on_inputs", "train_on_prompt"},
     not_here("only the answers of the assistant are targets")},
    {{"mask_history", "roles_to_train"},
     not_here("all answers of the assistant are targets")},
    {{"ignore_pad_token_for_loss"}, always(true, "padding is never a target")},
    {{"stage", "rl", "reward_model", "process_reward_model"}, manifest_stage},
    {{"excess_length_strategy"},
     no_effect("a document that is longer than a row is cut")},
    {{"plugins", "strict", "is_llama_derived_model", "is_mistral_derived_model",
      "is_falcon_derived_model", "is_qwen_derived_model"},
     no_effect("it is a setting of the other program itself")},
    {{"ray_scope", "ray_run_name", "ray_storage_path", "ray_num_workers",
      "resources_per_worker", "placement_strategy", "ray_init_kwargs"},
     not_here("one process trains the model")},
};

}  // namespace

const std::vector<ManifestEntry>& manifest_table_of_text() { return kOfText; }

}  // namespace penstock
