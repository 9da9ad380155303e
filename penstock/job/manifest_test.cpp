#include "penstock/job/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(only(R"({"lr_scheduler_type": "cosine"})").text(),
              EndsWith("the key is unknown"));
  EXPECT_THAT(only(R"({"optim": "paged_adamw_8bit"})").text(),
              HasSubstr("IS NOT USED"));
  EXPECT_THAT(only(R"({"image_size": 256})").text(),
              HasSubstr("no field of the kind 'image'"));
  EXPECT_THAT(only(R"({"prefetch_factor": 2})").text(),
              HasSubstr("number of workers is not given"));
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
              HasSubstr("no spectrogram field"));
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
