#include "penstock/job/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/job/job.h"

namespace penstock {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

class ManifestTest : public testing::Test {
 protected:
  std::vector<ManifestKey> apply(const std::string& manifest) {
    return apply_manifest(Json::parse(manifest, "manifest"), document_);
  }
  ManifestKey only(const std::string& manifest) {
    std::vector<ManifestKey> keys = apply(manifest);
    EXPECT_THAT(keys, SizeIs(1));
    return keys.at(0);
  }
  std::string job() const { return document_.dump(); }
  static std::string same(const char* json) {
    return Json::parse(json, "expected").dump();
  }

  Json document_ = Json::parse(
      R"({"fields": {"text": {"tokens": {"column": "text"}}}})", "job");
};

TEST_F(ManifestTest, TranslatesTheKeysOfATeam) {
  apply(R"({"training": {"max_seq_length": 2048, "bf16": true,
      "gradient_accumulation_steps": 8, "learning_rate": 1e-4,
      "use_tf32": true, "group_by_length": true},
      "config": {"num_workers": 4, "prefetch_factor": 2, "batch_size": 16,
      "device": "cuda:1", "epochs": 3}})");
  EXPECT_EQ(job(), same(R"({"fields": {"text": {"tokens": {"column": "text",
                                              "max_length": 2048}}},
               "train": {"precision": "bfloat16", "accumulate": 8, "lr": 1e-4,
                         "tf32": true, "epochs": 3},
               "loader": {"workers": 4, "prefetch": 8, "batch_size": 16},
               "device": {"kind": "cuda", "number": 1}})"));
}

TEST_F(ManifestTest, SaysWhatBecameOfEveryKey) {
  EXPECT_EQ(only(R"({"batch_size": 16})").text(),
            "manifest: batch_size = 16 -> loader.batch_size = 16");
  EXPECT_THAT(only(R"({"pin_memory": true})").text(),
              HasSubstr("no setting is needed: "));
  EXPECT_THAT(only(R"({"batchsize": 16})").text(),
              HasSubstr("IS NOT USED: the key is unknown: did you mean "
                        "'batch_size'?"));
  EXPECT_THAT(only(R"({"frobnicate_quux": 1})").text(),
              EndsWith("the key is unknown"));
  EXPECT_THAT(only(R"({"optim": "paged_adamw_8bit"})").text(),
              HasSubstr("IS NOT USED"));
  EXPECT_THAT(only(R"({"image_size": 256})").text(),
              HasSubstr("no field of the job is of the kind 'image'"));
  EXPECT_THAT(only(R"({"prefetch_factor": 2})").text(),
              HasSubstr("no number of them"));
}

TEST_F(ManifestTest, KnowsEveryKeyAndLosesNone) {
  for (const std::string& key : manifest_keys()) {
    document_ = Json();
    bool said = false;
    for (const char* value : {"true", "2", "\"cpu\""}) {
      try {
        const ManifestKey found = only("{\"" + key + "\": " + value + "}");
        said |= !found.settings.empty() || !found.why.empty();
      } catch (const Error& error) {
        EXPECT_EQ(error.parts().code, "manifest.value") << key;
      }
    }
    EXPECT_TRUE(said) << key;
  }
  for (const char* named : {"max_seq_length",
                            "group_by_length",
                            "pretokenized_cache",
                            "gradient_accumulation_steps",
                            "gradient_checkpointing",
                            "bf16",
                            "fp16",
                            "use_amp",
                            "use_tf32",
                            "use_sdpa",
                            "optim",
                            "dataloader_num_workers",
                            "dataloader_prefetch_factor",
                            "dataloader_persistent_workers",
                            "num_workers",
                            "prefetch_factor",
                            "pin_memory",
                            "persistent_workers",
                            "batch_size",
                            "val_batch_size",
                            "learning_rate",
                            "epochs",
                            "preload_to_gpu",
                            "accelerator",
                            "device",
                            "stage_dir",
                            "use_specaugment",
                            "profile_performance",
                            "profile_gpu_util",
                            "image_size",
                            "encoder_type"})
    EXPECT_THAT(manifest_keys(), Contains(named));
}

/// transformers 5.24: dataclasses.fields(Seq2SeqTrainingArguments).
constexpr const char* kTrainingArguments[] = {
    "output_dir",
    "per_device_train_batch_size",
    "num_train_epochs",
    "max_steps",
    "learning_rate",
    "lr_scheduler_type",
    "lr_scheduler_kwargs",
    "warmup_steps",
    "optim",
    "optim_args",
    "weight_decay",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "optim_target_modules",
    "gradient_accumulation_steps",
    "average_tokens_across_devices",
    "max_grad_norm",
    "label_smoothing_factor",
    "bf16",
    "fp16",
    "bf16_full_eval",
    "fp16_full_eval",
    "tf32",
    "activation_checkpointing",
    "activation_checkpointing_kwargs",
    "gradient_checkpointing",
    "gradient_checkpointing_kwargs",
    "torch_compile",
    "torch_compile_backend",
    "torch_compile_mode",
    "use_liger_kernel",
    "liger_kernel_config",
    "use_cache",
    "neftune_noise_alpha",
    "torch_empty_cache_steps",
    "auto_find_batch_size",
    "logging_strategy",
    "logging_steps",
    "logging_first_step",
    "log_on_each_node",
    "logging_nan_inf_filter",
    "include_num_input_tokens_seen",
    "log_level",
    "log_level_replica",
    "disable_tqdm",
    "report_to",
    "run_name",
    "project",
    "trackio_space_id",
    "trackio_bucket_id",
    "trackio_static_space_id",
    "eval_strategy",
    "eval_steps",
    "eval_delay",
    "per_device_eval_batch_size",
    "prediction_loss_only",
    "eval_on_start",
    "eval_do_concat_batches",
    "eval_use_gather_object",
    "eval_accumulation_steps",
    "include_for_metrics",
    "batch_eval_metrics",
    "save_only_model",
    "save_strategy",
    "save_steps",
    "save_on_each_node",
    "save_total_limit",
    "enable_jit_checkpoint",
    "push_to_hub",
    "hub_token",
    "hub_private_repo",
    "hub_model_id",
    "hub_strategy",
    "hub_always_push",
    "hub_revision",
    "load_best_model_at_end",
    "metric_for_best_model",
    "greater_is_better",
    "ignore_data_skip",
    "restore_callback_states_from_checkpoint",
    "full_determinism",
    "seed",
    "data_seed",
    "use_cpu",
    "accelerator_config",
    "parallelism_config",
    "dataloader_drop_last",
    "dataloader_num_workers",
    "dataloader_pin_memory",
    "dataloader_persistent_workers",
    "dataloader_prefetch_factor",
    "dataloader_multiprocessing_context",
    "dataloader_in_order",
    "remove_unused_columns",
    "label_names",
    "train_sampling_strategy",
    "length_column_name",
    "ddp_find_unused_parameters",
    "ddp_bucket_cap_mb",
    "ddp_broadcast_buffers",
    "ddp_static_graph",
    "ddp_backend",
    "ddp_timeout",
    "fsdp",
    "fsdp_config",
    "deepspeed",
    "debug",
    "skip_memory_metrics",
    "do_train",
    "do_eval",
    "do_predict",
    "resume_from_checkpoint",
    "local_rank",
    "sortish_sampler",
    "predict_with_generate",
    "generation_max_length",
    "generation_num_beams",
    "generation_config"};
/// Fields that 4 had besides.
constexpr const char* kOldTrainingArguments[] = {
    "overwrite_output_dir",
    "evaluation_strategy",
    "per_gpu_train_batch_size",
    "per_gpu_eval_batch_size",
    "warmup_ratio",
    "logging_dir",
    "save_safetensors",
    "no_cuda",
    "use_mps_device",
    "jit_mode_eval",
    "use_ipex",
    "fp16_opt_level",
    "half_precision_backend",
    "fp16_backend",
    "tpu_num_cores",
    "tpu_metrics_debug",
    "past_index",
    "fsdp_min_num_params",
    "fsdp_transformer_layer_cls_to_wrap",
    "adafactor",
    "group_by_length",
    "push_to_hub_model_id",
    "push_to_hub_organization",
    "push_to_hub_token",
    "include_inputs_for_metrics",
    "mp_parameters",
    "torchdynamo",
    "include_tokens_per_second"};

TEST_F(ManifestTest, KnowsEveryFieldOfTrainingArguments) {
  for (const char* name : kTrainingArguments)
    EXPECT_THAT(manifest_keys(), Contains(name));
  for (const char* name : kOldTrainingArguments)
    EXPECT_THAT(manifest_keys(), Contains(name));
}

TEST_F(ManifestTest, NamesEachKeyOnce) {
  const std::vector<std::string> keys = manifest_keys();
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST_F(ManifestTest, FollowsTheMeaningOfKeysThatBelongTogether) {
  document_ = Json();
  apply(R"({"num_train_epochs": 3.0, "max_steps": 100, "warmup_steps": 0,
            "warmup_ratio": 0.1, "gradient_accumulation_steps": 4,
            "lr_scheduler_type": "linear", "eval_strategy": "steps",
            "eval_steps": 0.25, "save_strategy": "steps", "save_steps": 10,
            "seed": 1, "data_seed": 2, "bf16": "auto"})");
  EXPECT_EQ(job(), same(R"({"train": {"max_steps": 400, "epochs": 400,
      "warmup_ratio": 0.1, "accumulate": 4, "schedule": "linear",
      "validate_every_steps": 100, "checkpoint_every_steps": 40, "precision": "bfloat16"},
      "loader": {"seed": 2}})"));
  document_ = Json();
  apply(R"({"num_train_epochs": 3.0, "max_steps": -1, "warmup_steps": 5,
            "warmup_ratio": 0.1, "eval_strategy": "no", "eval_steps": 500,
            "save_strategy": "epoch", "save_steps": 500, "seed": 1})");
  EXPECT_EQ(job(), same(R"({"train": {"epochs": 3, "warmup_steps": 5},
                            "loader": {"seed": 1}})"));
  document_ = Json();
  apply(R"({"lr_scheduler_type": "constant", "warmup_steps": 10})");
  EXPECT_EQ(job(), same(R"({"train": {"schedule": "constant",
                                      "warmup_steps": 0}})"));
  document_ = Json();
  apply(R"({"load_best_model_at_end": true, "early_stopping_patience": 3,
            "metric_for_best_model": "eval_accuracy"})");
  EXPECT_EQ(job(), same(R"({"train": {"keep": "best", "patience": 3,
                                      "metric": "accuracy"}})"));
}

TEST_F(ManifestTest, SaysWhatCannotBeKnownOrIsNotHere) {
  EXPECT_THAT(only(R"({"save_steps": 0.1})").text(),
              HasSubstr("IS NOT USED: it is a share of all steps"));
  EXPECT_THAT(only(R"({"load_in_4bit": true})").text(),
              HasSubstr("IS NOT USED: four-bit weights need adapters"));
  EXPECT_THAT(only(R"({"load_in_8bit": true})").text(),
              HasSubstr("IS NOT USED: weights of eight bits"));
  EXPECT_THAT(only(R"({"bnb_4bit_quant_type": "fp4"})").text(),
              HasSubstr("supported as nf4, not \"fp4\""));
  EXPECT_TRUE(only(R"({"load_in_4bit": false})").understood);
  EXPECT_FALSE(only(R"({"deepspeed": "zero3.json"})").understood);
  EXPECT_FALSE(only(R"({"lr_scheduler_type": "polynomial"})").understood);
  EXPECT_THAT(only(R"({"report_to": ["tensorboard", "wandb"]})").text(),
              HasSubstr("not sent to \"wandb\""));
  EXPECT_FALSE(only(R"({"report_to": "wandb"})").understood);
  EXPECT_FALSE(only(R"({"optim": "adamw_torch_8bit"})").understood);
  EXPECT_FALSE(only(R"({"metric_for_best_model": "bleu"})").understood);
  EXPECT_THROW(only(R"({"num_train_epochs": 2.5})"), Error);
  EXPECT_FALSE(only(R"({"val_set_size": 500})").understood);
}

TEST_F(ManifestTest, TakesAdaptersOfThreePrograms) {
  const char* expected = R"({"model": {"kind": "causal_lm", "lora": {"r": 16,
      "alpha": 32, "target_modules": ["q_proj", "o_proj"]}}})";
  for (const char* manifest :
       {R"({"lora_r": 16, "lora_alpha": 32, "adapter": "lora",
            "lora_target_modules": ["q_proj", "o_proj"]})",
        R"({"finetuning_type": "lora", "lora_rank": 16, "lora_alpha": 32,
            "lora_target": "q_proj, o_proj"})",
        R"({"lora_config": {"peft_type": "LORA", "r": 16, "lora_alpha": 32,
            "lora_dropout": 0.0, "bias": "none",
            "target_modules": ["q_proj", "o_proj"]}})"}) {
    document_ = Json::parse(R"({"model": {"kind": "causal_lm"}})", "job");
    for (const ManifestKey& key : apply(manifest))
      EXPECT_TRUE(key.understood) << key.text();
    EXPECT_EQ(job(), same(expected)) << manifest;
  }
  EXPECT_FALSE(only(R"({"lora_dropout": 0.05})").understood);
  document_ = Json::parse(R"({"model": {"kind": "causal_lm"}})", "job");
  apply(R"({"finetuning_type": "full", "lora_rank": 8})");
  EXPECT_EQ(job(), same(R"({"model": {"kind": "causal_lm"}})"));
}

TEST_F(ManifestTest, TakesWeightsOfFourBitsBesideAdapters) {
  const Json expected = Json::parse(
      R"({"kind": "causal_lm", "lora": {"r": 16}, "quantize": "nf4",
          "bnb_4bit_use_double_quant": false,
          "bnb_4bit_compute_dtype": "bfloat16"})",
      "expected");
  for (const char* manifest :
       {R"({"lora_r": 16, "adapter": "qlora", "load_in_4bit": true,
            "bnb_4bit_use_double_quant": false, "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_compute_dtype": "torch.bfloat16"})",
        R"({"finetuning_type": "lora", "lora_rank": 16, "quantization_bit": 4,
            "double_quantization": false,
            "bnb_4bit_compute_dtype": "bfloat16"})",
        R"({"lora_config": {"r": 16}, "quantization_config": {
            "load_in_4bit": true, "bnb_4bit_use_double_quant": false,
            "bnb_4bit_compute_dtype": "bfloat16"}})"}) {
    document_ = Json::parse(R"({"model": {"kind": "causal_lm"}})", "job");
    for (const ManifestKey& key : apply(manifest))
      EXPECT_TRUE(key.understood) << key.text();
    const Json& model = *document_.find("model");
    EXPECT_EQ(model.object().size(), 5U) << manifest;
    for (const auto& [name, value] : expected.object())
      EXPECT_EQ(*model.find(name), value) << manifest;
  }
  document_ = Json::parse(R"({"model": {"kind": "causal_lm"}})", "job");
  apply(R"({"lora_r": 8, "load_in_4bit": false,
            "bnb_4bit_compute_dtype": "bfloat16"})");
  EXPECT_EQ(job(), same(R"({"model": {"kind": "causal_lm",
                                      "lora": {"r": 8}}})"));
}

TEST_F(ManifestTest, RefusesAPickle) {
  const std::string path = testing::TempDir() + "training_args.bin";
  for (const std::string text : {"PK\x03\x04"
                                 "data.pkl",
                                 "\x80\x04K\x01."}) {
    std::ofstream(path, std::ios::binary) << text;
    try {
      read_manifest(path);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "manifest.value");
      EXPECT_THAT(error.what(), HasSubstr("to_json_string()"));
    }
  }
  std::filesystem::remove(path);
}

TEST_F(ManifestTest, ReportsWhatHasNoEffect) {
  Json job = Json::parse(
      R"({"fields": {"t": {"tokens": {"pack": "best_fit"}}}})", "test");
  auto keys =
      apply_manifest(Json::parse(R"({"group_by_length": true})", "test"), job);
  EXPECT_TRUE(keys[0].settings.empty());
  EXPECT_THAT(keys[0].text(), HasSubstr("has no effect"));
  EXPECT_EQ(job.find("loader"), nullptr);
}

TEST_F(ManifestTest, MasksTheSpectrogramsThatHaveNoMasks) {
  Json job = Json::parse(
      R"({"fields": {"a": {"audio": {"mel": {}}},
                     "b": {"audio": {"mel": {}, "augment": [
                       {"spec_augment": {"time_masks": 1}}]}},
                     "c": {"audio": {}}}})",
      "test");
  const Json manifest = Json::parse(R"({"use_specaugment": true})", "test");
  const auto keys = apply_manifest(manifest, job);
  const Json& fields = *job.find("fields");
  const Json* masks = fields.find("a")->find("audio")->find("augment");
  ASSERT_NE(masks, nullptr);
  EXPECT_THAT(masks->dump(), HasSubstr("frequency_masks"));
  EXPECT_EQ(fields.find("b")->find("audio")->find("augment")->array().size(),
            1u);
  EXPECT_EQ(fields.find("c")->find("audio")->find("augment"), nullptr);
  Json without = Json::parse(R"({"fields": {"c": {"audio": {}}}})", "test");
  EXPECT_THAT(apply_manifest(manifest, without)[0].text(),
              HasSubstr("no field of the job is a spectrogram"));
}

TEST_F(ManifestTest, StagesTheSource) {
  Json job = Json::parse(R"({"source": "csv:t.csv"})", "test");
  apply_manifest(Json::parse(R"({"stage_dir": "/fast"})", "test"), job);
  EXPECT_EQ(job.find("source")->find("stage")->string(), "/fast");
}

TEST_F(ManifestTest, RefusesKeysThatContradictEachOther) {
  for (const char* manifest :
       {R"({"bf16": true, "fp16": true})",
        R"({"batch_size": 1, "training": {"batch_size": 2}})",
        R"({"bf16": "yes"})", R"({"num_workers": -1})",
        R"({"device": "cuda:x"})"}) {
    try {
      apply(manifest);
      ADD_FAILURE() << manifest;
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "manifest.value") << manifest;
    }
  }
  document_ = Json();
  apply(R"({"use_amp": true, "bf16": true, "accelerator": "gpu",
            "device": "cuda:0"})");
  EXPECT_EQ(job(), same(R"({"train": {"precision": "bfloat16"},
                            "device": {"kind": "cuda", "number": 0}})"));
}

TEST_F(ManifestTest, TakesSectionsOfAJobAsTheyAre) {
  document_ = Json();
  const auto keys = apply(
      R"({"source": {"kind": "jsonl", "path": "a.jsonl"},
          "fields": {"text": {"tokens": {"column": "text"}}},
          "loader": {"seed": 3}, "batch_size": 4, "max_seq_length": 64})");
  EXPECT_EQ(job(), same(R"({"source": {"kind": "jsonl", "path": "a.jsonl"},
      "fields": {"text": {"tokens": {"column": "text", "max_length": 64}}},
      "loader": {"seed": 3, "batch_size": 4}})"));
  EXPECT_THAT(keys, SizeIs(5));
}

TEST_F(ManifestTest, ReadsTokensThatAreThereAlready) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "manifest_tokens";
  std::filesystem::create_directories(folder);
  const std::string given =
      "{\"pretokenized_cache\": \"" + folder.string() + "\"}";
  EXPECT_THAT(only(given).settings,
              ElementsAre("loader.cache_dir = \"" + folder.string() + "\""));
  std::ofstream(folder / "state.json") << "{}";
  only(given);
  EXPECT_EQ(document_.find("source")->find("kind")->string(), "hf");
  EXPECT_EQ(document_.find("fields")
                ->find("text")
                ->find("tokens")
                ->find("column")
                ->string(),
            "input_ids");
  EXPECT_EQ(
      document_.find("fields")->find("text")->find("tokens")->find("labels"),
      nullptr);
  std::ofstream(folder / "dataset_info.json")
      << R"({"features": {"input_ids": {}, "labels": {}}})";
  EXPECT_THAT(only(given).settings,
              Contains("fields.text.tokens.labels = \"labels\""));
  std::filesystem::remove_all(folder);
}

TEST_F(ManifestTest, IsAFileOfJsonOrYaml) {
  const std::string path = testing::TempDir() + "manifest_file";
  for (const char* text : {"// of the run\n{\"epochs\": 2, \"bf16\": true}",
                           "# of the run\nepochs: 2\nbf16: yes\n"}) {
    std::ofstream(path) << text;
    EXPECT_EQ(read_manifest(path).dump(),
              same(R"({"epochs": 2, "bf16": true})"));
  }
  std::ofstream(path) << "- 1\n";
  EXPECT_THROW(read_manifest(path), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(read_manifest(path), Error);
}

}  // namespace
}  // namespace penstock
