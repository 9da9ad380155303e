#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "penstock/trainer/models/causal_lm/network.h"

// Against transformers: tests/data/causal_lm/make_golden.py.
namespace penstock {
namespace {

using testing::HasSubstr;

const std::string kFolder = std::string(PENSTOCK_TEST_DATA) + "/causal_lm/";

struct Expected {
  explicit Expected(const std::string& name)
      : files(kFolder + name + "_expected.safetensors"),
        ids(files.take("ids", {3, 21})),
        logits(files.take("logits", {3, 21, 40})),
        loss(files.take("loss", {1})[0]),
        gradient(files.take("gradient", {files.shape_of("gradient")})) {}
  WeightFiles files;
  at::Tensor ids, logits, loss, gradient;
};

DecoderNetwork decoder(const std::string& name, bool recompute = false) {
  return DecoderNetwork(
      {.config = read_decoder_config(kFolder + name), .recompute = recompute},
      at::kFloat, std::make_shared<WeightFiles>(kFolder + name));
}

at::Tensor positions(std::int64_t rows) {
  return at::arange(21, at::kLong).unsqueeze(0).expand({rows, 21});
}

at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& ids) {
  return at::cross_entropy_loss(logits.slice(1, 0, -1).flatten(0, 1),
                                ids.slice(1, 1).flatten());
}

class DecoderGolden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, DecoderGolden,
                         testing::Values("qwen3", "llama", "qwen2"));

TEST_P(DecoderGolden, LogitsLossAndGradientsAreThoseOfTransformers) {
  const Expected expected(GetParam());
  for (bool recompute : {false, true}) {
    SCOPED_TRACE(recompute);
    const DecoderNetwork model = decoder(GetParam(), recompute);
    at::Tensor logits =
        model.logits(model.hidden(expected.ids, positions(3), {}));
    EXPECT_LT((logits - expected.logits).abs().max().item<float>(), 1e-4);
    at::Tensor loss = loss_of(logits, expected.ids);
    EXPECT_NEAR(loss.item<float>(), expected.loss.item<float>(), 1e-5);
    loss.backward();
    for (const Parameter& one : model.parameters())
      if (one.name == "model.layers.0.self_attn.q_proj.weight") {
        EXPECT_LT(
            (one.value.grad() - expected.gradient).abs().max().item<float>(),
            1e-5);
      }
  }
}

TEST_P(DecoderGolden, DocumentsOfOneRowSeeNothingOfEachOther) {
  const Expected expected(GetParam());
  const DecoderNetwork model = decoder(GetParam());
  at::Tensor row = expected.ids.reshape({1, 63});
  at::Tensor place = positions(3).reshape({1, 63});
  at::Tensor documents =
      at::arange(3, at::kLong).repeat_interleave(21).unsqueeze(0);
  for (const Sight& sight :
       {Sight{.mask = mask_of(documents)}, Sight{.bounds = {0, 21, 42, 63}}}) {
    at::Tensor logits = model.logits(model.hidden(row, place, sight));
    EXPECT_LT((logits.reshape({3, 21, 40}) - expected.logits)
                  .abs()
                  .max()
                  .item<float>(),
              1e-4);
  }
  at::Tensor mixed = model.logits(model.hidden(row, place, {}));
  EXPECT_GT(
      (mixed.reshape({3, 21, 40}) - expected.logits).abs().max().item<float>(),
      0.1);
}

DecoderNetwork adapted_model() {
  return DecoderNetwork(
      {.config = read_decoder_config(kFolder + "qwen3"),
       .lora = Lora{.r = 4,
                    .alpha = 8,
                    .targets = {"q_proj", "v_proj", "down_proj"}}},
      at::kFloat, std::make_shared<WeightFiles>(kFolder + "qwen3"));
}

TEST(Adapter, HasTheNamesAndShapesThatPeftWrites) {
  const std::string path = kFolder + "adapter.json";
  const Json golden = Json::parse(real_files().read(path), path);
  const DecoderNetwork model = adapted_model();
  std::map<std::string, std::string> shapes, theirs;
  for (const Parameter& one : model.parameters()) {
    Json shape;
    for (std::int64_t extent : one.value.sizes()) shape.push_back(extent);
    shapes[one.name] = shape.dump();
    EXPECT_EQ(one.value.abs().sum().item<float>() == 0,
              one.name.ends_with("lora_B.weight"));
  }
  for (const auto& [name, shape] : golden.find("tensors")->object())
    theirs[name] = shape.dump();
  EXPECT_EQ(shapes, theirs);
  // At first it says what its base says.
  const Expected expected("qwen3");
  at::Tensor logits =
      model.logits(model.hidden(expected.ids, positions(3), {}));
  EXPECT_LT((logits - expected.logits).abs().max().item<float>(), 1e-4);
}

TEST(Adapter, AddsWhatPeftAdds) {
  const WeightFiles files(kFolder + "adapter_expected.safetensors");
  const DecoderNetwork model = adapted_model();
  const at::NoGradGuard no_graph;
  for (const Parameter& one : model.parameters())
    at::Tensor(one.value).copy_(files.take(one.name, one.value.sizes()));
  at::Tensor logits =
      model.logits(model.hidden(files.take("ids", {3, 21}), positions(3), {}));
  at::Tensor expected = files.take("logits", {3, 21, 40});
  EXPECT_LT((logits - expected).abs().max().item<float>(), 1e-4);
}

/// What is refused when the model of this configuration and these weights is
/// made.
std::string refusal(const std::string& config, const std::string& weights) {
  try {
    DecoderNetwork({.config = read_decoder_config(config)}, at::kFloat,
                   std::make_shared<WeightFiles>(weights));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "nothing was refused";
}

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "causal_lm_config.json";
  std::ofstream(path) << text;
  return path;
}

TEST(Weights, ThatAreNotOfTheModelAreNamed) {
  EXPECT_THAT(refusal(kFolder + "qwen3", kFolder + "qwen2"),
              HasSubstr("tensor 'model.layers.0.self_attn.q_proj.weight' is "
                        "float32 [16, 16], expected numbers of shape"));
  EXPECT_THAT(refusal(kFolder + "qwen2", kFolder + "qwen3"),
              HasSubstr("model.layers.0.self_attn.q_proj"));
  EXPECT_THAT(refusal(kFolder + "llama",
                      kFolder + "llama/model-00001-of-00004.safetensors"),
              HasSubstr("has no tensor"));
  EXPECT_THAT(refusal(kFolder + "llama", kFolder + "nowhere"),
              HasSubstr("nowhere"));
  EXPECT_THAT(refusal(kFolder + "llama", kFolder),
              HasSubstr("holds neither model.safetensors nor"));
  const std::string index = testing::TempDir() + "x.index.json";
  std::ofstream(index) << R"({"weight_map": {"a": "../b.safetensors"}})";
  EXPECT_THAT(refusal(kFolder + "llama", index),
              HasSubstr("expected the name of a file in the same folder"));
}

TEST(Config, OfAModelThatIsNotKnownIsRefusedByName) {
  auto refused = [](const std::string& text) {
    return refusal(written(text), kFolder + "qwen3");
  };
  const std::string sizes =
      R"("vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
         "num_hidden_layers": 1, "num_attention_heads": 2)";
  EXPECT_THAT(refused("[1]"), HasSubstr("expected an object"));
  EXPECT_THAT(refused(R"({"model_type": "gpt2"})"), HasSubstr("model_type"));
  EXPECT_THAT(refused(R"({"model_type": "llama"})"), HasSubstr("vocab_size"));
  EXPECT_THAT(refused(R"({"model_type": "llama", "rope_scaling":
                      {"type": "yarn", "factor": 2}, )" +
                      sizes + "}"),
              HasSubstr("\"yarn\", expected one of default, linear, llama3"));
  EXPECT_THAT(refused(R"({"model_type": "mistral", "sliding_window": 4, )" +
                      sizes + "}"),
              HasSubstr("sliding-window attention"));
  EXPECT_THAT(refused(R"({"model_type": "llama", "attention_dropout": 0.5, )" +
                      sizes + "}"),
              HasSubstr("dropout is not supported"));
  auto refused_quantization = [&](const std::string& config) {
    return refused(R"({"model_type": "llama", "quantization_config": )" +
                   config + ", " + sizes + "}");
  };
  EXPECT_THAT(refused_quantization(R"({"quant_method": "gptq", "bits": 4})"),
              HasSubstr("quantised weights of \"gptq\""));
  EXPECT_THAT(refused_quantization(
                  R"({"quant_method": "bitsandbytes", "load_in_8bit": true})"),
              HasSubstr("eight bits (int8)"));
  EXPECT_THAT(refused_quantization(
                  R"({"quant_method": "bitsandbytes", "load_in_4bit": true})"),
              HasSubstr("quantised weights of \"fp4\""));
  EXPECT_THAT(
      refused(R"({"model_type": "llama", "head_dim": 3, )" + sizes + "}"),
      HasSubstr("expected an even number"));
  EXPECT_THAT(refused(R"({"model_type": "llama", "num_key_value_heads": 3, )" +
                      sizes + "}"),
              HasSubstr("does not divide num_attention_heads"));
}

}  // namespace
}  // namespace penstock
