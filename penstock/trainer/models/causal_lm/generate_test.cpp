#include "penstock/trainer/models/causal_lm/generate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

// Against transformers: tests/data/causal_lm/make_generated.py.
namespace penstock {
namespace {

const std::string kModels = std::string(PENSTOCK_TEST_DATA) + "/causal_lm/";
using Tokens = std::vector<std::int32_t>;

DecoderNetwork small_decoder(const std::string& name) {
  return DecoderNetwork({.config = read_decoder_config(kModels + name)},
                        at::kFloat,
                        std::make_shared<WeightFiles>(kModels + name));
}

Tokens tokens_in(const Json& list) {
  Tokens tokens;
  for (const Json& one : list.array())
    tokens.push_back(static_cast<std::int32_t>(one.integer()));
  return tokens;
}

Tokens text_after(const DecoderNetwork& model, const Tokens& prompt,
                  const Generation& settings, std::int64_t row = 0) {
  return generated(model, prompt, row, settings, at::kCPU);
}

class Generated : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Generated,
                         testing::Values("qwen3", "llama", "qwen2"));

TEST_P(Generated, TheLikeliestTokensAreThoseOfTransformers) {
  const std::string path = kModels + "generated.json";
  const Json all = Json::parse(real_files().read(path), path);
  const DecoderNetwork model = small_decoder(GetParam());
  for (const Json& one : all.find(GetParam())->array()) {
    const Tokens expected = tokens_in(*one.find("tokens"));
    ASSERT_EQ(expected.size(), 64U);
    EXPECT_EQ(
        text_after(model, tokens_in(*one.find("prompt")), {.max_tokens = 64}),
        expected);
  }
}

TEST_P(Generated, WhatIsKeptOfEarlierTokensChangesNothing) {
  const at::NoGradGuard no_graph;
  const DecoderNetwork model = small_decoder(GetParam());
  const at::Tensor ids = at::arange(1, 13, at::kLong).unsqueeze(0);
  const at::Tensor whole = model.hidden(ids, at::arange(12).unsqueeze(0), {});
  SeenTokens seen{.most = 12};
  at::Tensor last = model.hidden(ids.slice(1, 0, 5), seen);
  EXPECT_LT((last - whole.slice(1, 0, 5)).abs().max().item<float>(), 1e-5);
  for (std::int64_t at = 5; at < 12; ++at) {
    last = model.hidden(ids.slice(1, at, at + 1), seen);
    EXPECT_LT((last - whole.slice(1, at, at + 1)).abs().max().item<float>(),
              1e-5);
  }
}

TEST(Generation, EndsBeforeTheTokenThatEndsTexts) {
  const DecoderNetwork model = small_decoder("qwen3");
  const Tokens whole = text_after(model, {3, 1, 4}, {.max_tokens = 20});
  const Tokens ended =
      text_after(model, {3, 1, 4}, {.max_tokens = 20, .ends = {whole[5]}});
  const auto end = std::ranges::find(whole, whole[5]);
  EXPECT_EQ(ended, Tokens(whole.begin(), end));
}

TEST(Generation, DrawsBySeedAndRow) {
  const DecoderNetwork model = small_decoder("qwen3");
  const Generation settings{.max_tokens = 30, .temperature = 1, .seed = 5};
  const Tokens first = text_after(model, {3}, settings, 1);
  EXPECT_EQ(text_after(model, {3}, settings, 1), first);
  EXPECT_NE(text_after(model, {3}, settings, 2), first);
  Generation other = settings;
  other.seed = 6;
  EXPECT_NE(text_after(model, {3}, other, 1), first);
}

TEST(Generation, TakesTokensAsOftenAsTheyAreLikely) {
  const at::Tensor logits = at::tensor({0.5, 0.3, 0.2}).log().to(at::kFloat);
  const Generation settings{.temperature = 1};
  std::map<std::int64_t, int> drawn;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    ++drawn[chosen_token(logits, settings, Random(1, 2, 3, i))];
  EXPECT_NEAR(drawn[0], 5000, 150);
  EXPECT_NEAR(drawn[1], 3000, 150);
  EXPECT_NEAR(drawn[2], 2000, 150);
}

TEST(Generation, LeavesOutWhatIsBehindTopP) {
  const at::Tensor logits = at::tensor({0.2, 0.5, 0.3}).log().to(at::kFloat);
  for (const auto& [top_p, tokens] : {std::pair(0.0, 1U), std::pair(0.4, 1U),
                                      std::pair(0.7, 2U), std::pair(1.0, 3U)}) {
    std::map<std::int64_t, int> drawn;
    for (std::uint64_t i = 0; i < 1000; ++i)
      ++drawn[chosen_token(logits, {.temperature = 1, .top_p = top_p},
                           Random(1, 2, 3, i))];
    EXPECT_EQ(drawn.size(), tokens) << top_p;
    EXPECT_GT(drawn[1], 0);
  }
  EXPECT_EQ(chosen_token(logits, {}, Random(1, 2, 3, 4)), 1);
}

}  // namespace
}  // namespace penstock
