#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/models/causal_lm/descriptor.h"
#include "penstock/trainer/fake/table_model.h"

namespace penstock {
namespace {

using testing::HasSubstr;

const std::string kFolder = std::string(PENSTOCK_TEST_DATA) + "/causal_lm/";
constexpr std::int64_t kSteps = 24;

/// 240 documents of 3 to 14 tokens, each of which counts up from its first.
std::string documents() {
  std::string csv = "ids\n";
  for (int i = 0; i < 240; ++i) {
    std::string ids;
    for (int j = 0; j < 3 + i * 7 % 12; ++j)
      ids += (j == 0 ? "" : ", ") + std::to_string((i + j) % 39);
    csv += "\"[" + ids + "]\"\n";
  }
  return csv;
}

Json job(const std::vector<std::string>& sets = {}) {
  Json json = Json::parse(R"({
    "fields": {"tokens": {"tokens": {"column": "ids", "max_length": 32,
                                     "vocab_size": 40, "pad_id": 39}}},
    "split": {"train": 0.8, "val": 0.2},
    "loader": {"batch_size": 4},
    "model": {"kind": "causal_lm"},
    "train": {"lr": 0.01, "warmup_steps": 2, "threads": 1}})",
                          "test");
  json["model"]["config"] = kFolder + "qwen3";
  for (const std::string& set : sets) apply_setting(json, set);
  return json;
}

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

std::vector<float> tensor(const ModelState& state, const std::string& name) {
  for (const NamedTensor& one : state.tensors)
    if (one.name == name) {
      const auto* first = reinterpret_cast<const float*>(one.view.data);
      return {first, first + one.view.bytes() / sizeof(float)};
    }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(CausalLm, LearnsToCountFromWeightsThatAreDrawn) {
  TableModel table(documents(), job());
  auto model = table.stepper();
  Json before = table.validate(*model);
  EXPECT_NEAR(number(before, "val_loss"), std::log(40), 0.1);
  std::vector<double> losses = table.take(*model, 0, kSteps);
  Json after = table.validate(*model);
  EXPECT_LT(losses.back(), losses.front() / 2);
  EXPECT_NEAR(number(after, "val_perplexity"),
              std::exp(number(after, "val_loss")), 1e-6);
}

TEST(CausalLm, SaysThatAPackedRowHasTheLossOfItsDocuments) {
  for (const char* attention : {"mask", "documents", "auto"}) {
    TableModel table(documents(),
                     job({std::string("train.attention=") + attention}));
    auto model = table.stepper();
    EXPECT_EQ(model->facts().about.find("packed_row"), nullptr);
    table.take(*model, 0, 1);
    const Json seen = *model->facts().about.find("packed_row");
    EXPECT_GT(number(seen, "documents"), 1);
    EXPECT_NEAR(number(seen, "packed"), number(seen, "separate"), 1e-3);
  }
}

TEST(CausalLm, GivesTheSameHoweverDocumentsAreKeptApart) {
  auto losses = [](const std::vector<std::string>& sets) {
    TableModel table(documents(), job(sets));
    auto model = table.stepper();
    return table.take(*model, 0, 4);
  };
  const std::vector<double> masked = losses({"train.attention=mask"});
  const std::vector<double> apart = losses({"train.attention=documents"});
  const std::vector<double> again =
      losses({"train.attention=mask", "train.gradient_checkpointing=true"});
  for (std::size_t i = 0; i < masked.size(); ++i) {
    EXPECT_NEAR(masked[i], apart[i], 1e-4);
    EXPECT_EQ(masked[i], again[i]);
  }
}

TEST(CausalLm, StepsTogetherAreOneOfAllTheirTokens) {
  const std::vector<std::string> sets = {"fields.tokens.tokens.pack=none",
                                         "train.clip_norm=0"};
  std::vector<std::string> two = sets, one = sets;
  two.insert(two.end(), {"train.accumulate=2", "loader.batch_size=1"});
  one.emplace_back("loader.batch_size=2");
  TableModel halves(documents(), job(two)), whole(documents(), job(one));
  auto by_two = halves.stepper(), by_one = whole.stepper();
  const std::vector<double> parts = halves.take(*by_two, 0, 2);
  const std::vector<double> all = whole.take(*by_one, 0, 1);
  // The means of both documents are not the mean over their tokens.
  EXPECT_GT(std::abs((parts[0] + parts[1]) / 2 - all[0]), 1e-4);
  const std::string name =
      "adamw.first_moment.model.layers.1.mlp.down_proj.weight";
  const std::vector<float> a = tensor(by_two->save(), name),
                           b = tensor(by_one->save(), name);
  ASSERT_EQ(a.size(), b.size());
  double most = 0, off = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a[i]}));
    off = std::max(off, std::abs(double{a[i]} - double{b[i]}));
  }
  EXPECT_LT(off, most * 1e-4);
}

TEST(CausalLm, GoesOnFromASavedStateBitForBit) {
  const std::vector<std::vector<std::string>> all = {
      {"train.accumulate=3"},
      {"train.precision=bfloat16", "train.gradient_checkpointing=true"},
      {R"(model.lora={"r": 4, "target_modules": "all-linear"})",
       "train.ema=0.9"},
      {"model.quantize=nf4", "model.lora={}",
       "train.gradient_checkpointing=true"}};
  for (const std::vector<std::string>& sets : all) {
    SCOPED_TRACE(sets[0]);
    TableModel table(documents(), job(sets));
    auto whole = table.stepper();
    std::vector<double> losses = table.take(*whole, 0, kSteps);
    auto first = table.stepper();
    table.take(*first, 0, 7);  // no multiple of 3
    ModelState saved = first->save();
    auto second = table.stepper();
    second->restore(saved);
    EXPECT_EQ(table.take(*second, 7, kSteps),
              std::vector(losses.begin() + 7, losses.end()));
    expect_same_bits(whole->save(), second->save());
    EXPECT_LT(losses.back(), losses.front());
  }
}

TEST(CausalLm, AdaptersAloneAreLearnedAndLeft) {
  TableModel table(documents(), job({"model.path=" + kFolder + "qwen3",
                                     R"(model.lora={"r": 2})"}));
  auto model = table.stepper();
  table.take(*model, 0, 3);
  const ModelState state = model->save();
  for (const NamedTensor& one : state.tensors)
    EXPECT_TRUE(one.name == "adamw.steps" ||
                one.name.find(".lora_") != std::string::npos)
        << one.name;
  const WeightsForm& form = model->facts().form;
  EXPECT_EQ(form.file, "adapter_model.safetensors");
  EXPECT_TRUE(form.adapter);
  ASSERT_EQ(form.beside.size(), 1U);
  EXPECT_EQ(form.beside[0].first, "adapter_config.json");
  const Json config = Json::parse(form.beside[0].second, "test");
  EXPECT_EQ(config.find("base_model_name_or_path")->string(),
            kFolder + "qwen3");
  EXPECT_EQ(config.find("target_modules")->dump(), R"(["q_proj", "v_proj"])");
  const Json about = model->facts().about;
  EXPECT_EQ(number(about, "learned"), 2 * 2 * (16 + 32 + 16 + 16));
  EXPECT_GT(number(about, "parameters"), 5000);
}

TEST(CausalLm, LearnsBesideWeightsOfFourBits) {
  const std::vector<std::string> lora = {
      R"(model.lora={"r": 4, "target_modules": "all-linear"})"};
  auto with = [&](std::vector<std::string> sets) {
    sets.insert(sets.begin(), lora.begin(), lora.end());
    TableModel table(documents(), job(sets));
    auto model = table.stepper();
    return table.take(*model, 0, kSteps);
  };
  const std::vector<double> whole = with({});
  TableModel table(documents(), job({lora[0], "model.quantize=nf4"}));
  auto model = table.stepper();
  const std::vector<double> losses = table.take(*model, 0, kSteps);
  EXPECT_LT(losses.back(), losses.front());
  // They begin with the same adapters, beside weights that are only rounded.
  EXPECT_NEAR(losses.front(), whole.front(), 0.01);
  EXPECT_NE(losses.front(), whole.front());
  const Json quantized = *model->facts().about.find("quantized");
  EXPECT_EQ(number(quantized, "layers"), 2 * 7);
  // A map of 1 KiB, and codes and scales of all weights.
  EXPECT_LT(number(quantized, "bytes"),
            14 * 1100 + number(quantized, "parameters") * 0.6);
  EXPECT_GT(static_cast<double>(estimate_memory(*model, 4)->bytes.parameters),
            number(quantized, "bytes"));
  const std::vector<double> narrow =
      with({"model.quantize=nf4", "model.bnb_4bit_compute_dtype=bfloat16"});
  EXPECT_NEAR(narrow.back(), losses.back(), 0.05);
  EXPECT_NE(narrow.back(), losses.back());
  EXPECT_NE(
      with({"model.quantize=nf4", "model.bnb_4bit_use_double_quant=false"})
          .back(),
      losses.back());
}

TEST(CausalLm, TellsItsWorkAndItsMemory) {
  TableModel table(documents(), job());
  auto model = table.stepper();
  const RowWork work = model->facts().row_work;
  EXPECT_EQ(work.tokens, 32);
  EXPECT_GT(work.peak_flops, 1e8);
  EXPECT_GT(work.flops, 32 * 6 * number(model->facts().about, "learned") * 0.9);
  const auto memory = estimate_memory(*model, 4);
  EXPECT_NEAR(static_cast<double>(memory->bytes.optimizer),
              static_cast<double>(2 * memory->bytes.gradients), 64);
  EXPECT_GT(memory->per_row, 32 * 40 * 4);  // the logits, at least
  EXPECT_EQ(model->facts().form.beside[0].first, "config.json");
}

std::string refusal(const std::vector<std::string>& sets) {
  try {
    TableModel(documents(), job(sets)).stepper();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "nothing was refused";
}

TEST(CausalLm, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal({"fields.tokens.tokens.vocab_size=41"}),
              HasSubstr("the model knows 40 tokens"));
  EXPECT_THAT(refusal({"fields.tokens.tokens.vocab_size=0"}),
              HasSubstr("does not set the size of its vocabulary"));
  EXPECT_THAT(refusal({"model.config="}), HasSubstr("model.config"));
  EXPECT_THAT(refusal({"model.tokens=token"}), HasSubstr("'token'"));
  EXPECT_THAT(refusal({R"(model.lora={"target_modules": ["q_prog"]})"}),
              HasSubstr("there is no layer 'q_prog'"));
  EXPECT_THAT(refusal({R"(model.lora={"rank": 8})"}), HasSubstr("rank"));
  EXPECT_THAT(refusal({"model.quantize=nf4"}),
              HasSubstr("\"quantize\" is \"nf4\" and \"lora\" is missing"));
  for (const char* type : {"fp4", "int8"})
    EXPECT_THAT(
        refusal({"model.lora={}", std::string("model.quantize=") + type}),
        HasSubstr("found \"" + std::string(type) +
                  "\", expected one of: none, nf4"));
}

}  // namespace
}  // namespace penstock
