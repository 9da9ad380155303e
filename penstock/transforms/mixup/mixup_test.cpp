#include "penstock/transforms/mixup/mixup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "penstock/base/half.h"
#include "penstock/transforms/mixup/beta.h"
#include "penstock/transforms/operations.h"

namespace penstock {
namespace {

using testing::HasSubstr;

const std::vector<Output> kOutputs = {
    {.name = "x", .dtype = Dtype::float32, .row_shape = {2}},
    {.name = "y", .dtype = Dtype::float64},
    {.name = "class", .dtype = Dtype::int64},
    {.name = "text", .dtype = Dtype::float32, .lengths = Lengths::packed},
    {.name = "lines", .dtype = Dtype::float32, .lengths = Lengths::padded}};

/// Batches of rows x = (r, 10 r), y = r, class = r.
struct Rows {
  std::vector<float> x;
  std::vector<double> y;
  std::vector<std::int64_t> label, mixed;
  std::vector<float> lambda;
  std::vector<std::int64_t> live;

  explicit Rows(std::int64_t count)
      : mixed(static_cast<std::size_t>(count), -1),
        lambda(static_cast<std::size_t>(count), -1) {
    for (std::int64_t r = 0; r < count; ++r) {
      x.push_back(static_cast<float>(r));
      x.push_back(static_cast<float>(10 * r));
      y.push_back(static_cast<double>(r));
      label.push_back(r);
      live.push_back(r);
    }
  }
  void mix(const BoundOperation& mixup, BatchKey key) {
    auto at = [](auto& numbers) {
      return reinterpret_cast<std::byte*>(numbers.data());
    };
    std::vector<std::byte*> tensors = {at(x), at(y), at(label), at(mixed),
                                       at(lambda)};
    OperationScratch scratch;
    mixup.apply(
        {.tensors = tensors, .rows = std::ssize(y), .live = live, .key = key},
        scratch);
  }
};

std::unique_ptr<BoundOperation> bound_mixup(double alpha = 1) {
  return make_mixup(
             {.outputs = {"x", "y"}, .alpha = alpha, .labels = {"class"}})
      ->bind(kOutputs);
}

TEST(Mixup, EachRowBecomesAMixtureOfItselfAndItsPartner) {
  Rows rows(100);
  rows.mix(*bound_mixup(), {.seed = 1});
  float lambda = rows.lambda[0];
  EXPECT_GT(lambda, 0);
  EXPECT_LT(lambda, 1);
  std::set<std::int64_t> partners;
  for (std::size_t r = 0; r < 100; ++r) {
    auto partner = static_cast<std::size_t>(rows.mixed[r]);
    EXPECT_NE(partner, r);
    partners.insert(rows.mixed[r]);
    EXPECT_EQ(rows.lambda[r], lambda);
    auto number = [](std::size_t i) { return static_cast<float>(i); };
    EXPECT_EQ(rows.x[2 * r],
              lambda * number(r) + (1 - lambda) * number(partner));
    EXPECT_EQ(rows.x[2 * r + 1], lambda * (10 * number(r)) +
                                     (1 - lambda) * (10 * number(partner)));
    EXPECT_NEAR(rows.y[r], rows.x[2 * r], 1e-4);
    EXPECT_EQ(rows.label[r], static_cast<std::int64_t>(r)) << "stays";
  }
  EXPECT_EQ(partners.size(), 100u) << "each row is the partner of one";
}

// The values are those of numpy: tests/data/sound/make_augment.py.
TEST(Mixup, IsWhatItsTwinInNumpySays) {
  std::ifstream file(std::string(PENSTOCK_TEST_DATA) + "/sound/mixup.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json cases = Json::parse(text, "mixup.json");
  ASSERT_EQ(cases.array().size(), 16u);
  for (const Json& one : cases.array()) {
    SCOPED_TRACE(one.dump());
    auto number = [&](const char* name) { return one.find(name)->integer(); };
    Rows rows(number("rows"));
    for (std::size_t i = 0; i < rows.x.size(); ++i)
      rows.x[i] = static_cast<float>(i * i);
    rows.mix(*bound_mixup(one.find("alpha")->number()),
             {.seed = static_cast<std::uint64_t>(number("seed")),
              .epoch = number("epoch"),
              .step = number("step"),
              .rank = static_cast<int>(number("rank"))});
    const auto& x = one.find("x")->array();
    ASSERT_EQ(x.size(), rows.x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(static_cast<double>(rows.x[i]), x[i].number(),
                  1e-6 * (1 + x[i].number()));
    const auto& labels = one.find("labels")->array();
    for (std::size_t r = 0; r < labels.size(); ++r) {
      EXPECT_EQ(rows.mixed[r], labels[r].integer());
      EXPECT_NEAR(static_cast<double>(rows.lambda[r]),
                  one.find("lambda")->number(), 1e-6);
    }
  }
}

TEST(Mixup, NumbersOf16BitsAreMixedAsFloat32AndRoundedOnce) {
  for (Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    const bool brain = dtype == Dtype::bfloat16;
    auto bits = [&](float value) {
      return brain ? to_bfloat16(value) : to_float16(value);
    };
    auto number = [&](std::uint16_t of) {
      return brain ? from_bfloat16(of) : from_float16(of);
    };
    const std::vector<Output> outputs = {
        {.name = "h", .dtype = dtype, .row_shape = {2}},
        {.name = "class", .dtype = Dtype::int64}};
    std::vector<std::uint16_t> h;
    std::vector<std::int64_t> label, partner(20), live;
    std::vector<float> lambda(20);
    for (int r = 0; r < 20; ++r) {
      h.push_back(bits(static_cast<float>(r) / 7));
      h.push_back(bits(static_cast<float>(-r * r)));
      label.push_back(r);
      live.push_back(r);
    }
    const std::vector<std::uint16_t> before = h;
    std::vector<std::byte*> tensors;
    for (void* at :
         {static_cast<void*>(h.data()), static_cast<void*>(label.data()),
          static_cast<void*>(partner.data()),
          static_cast<void*>(lambda.data())})
      tensors.push_back(static_cast<std::byte*>(at));
    OperationScratch scratch;
    make_mixup({.outputs = {"h"}, .labels = {"class"}})
        ->bind(outputs)
        ->apply({.tensors = tensors, .rows = 20, .live = live, .key = {}},
                scratch);
    for (std::size_t r = 0; r < 20; ++r)
      for (std::size_t i = 0; i < 2; ++i) {
        const auto other = static_cast<std::size_t>(partner[r]);
        const float exact = lambda[r] * number(before[2 * r + i]) +
                            (1 - lambda[r]) * number(before[2 * other + i]);
        EXPECT_EQ(h[2 * r + i], bits(exact));
      }
  }
}

TEST(Mixup, PaddingAndMaskedRowsTakeNoPart) {
  Rows rows(10);
  rows.live = {0, 3, 4, 9};
  rows.mix(*bound_mixup(), {.seed = 1});
  for (std::int64_t r : {1, 2, 5, 6, 7, 8}) {
    auto row = static_cast<std::size_t>(r);
    EXPECT_EQ(rows.y[row], r);
    EXPECT_EQ(rows.mixed[row], 0);
    EXPECT_EQ(rows.lambda[row], 0);
  }
  for (std::int64_t r : rows.live)
    EXPECT_THAT(rows.live,
                testing::Contains(rows.mixed[static_cast<std::size_t>(r)]));
}

TEST(Mixup, ABatchOfOneRowStaysAsItIs) {
  Rows rows(1);
  rows.x = {0.1F, 0.7F};
  rows.mix(*bound_mixup(), {.seed = 1});
  EXPECT_THAT(rows.x, testing::ElementsAre(0.1F, 0.7F));
  EXPECT_EQ(rows.mixed[0], 0);
  Rows none(3);
  none.live.clear();
  none.mix(*bound_mixup(), {.seed = 1});
  EXPECT_THAT(none.y, testing::ElementsAre(0, 1, 2));
}

TEST(Mixup, DrawsDependOnSeedEpochStepAndOperation) {
  auto mixup = bound_mixup();
  auto drawn = [&](BatchKey key) {
    Rows rows(50);
    rows.mix(*mixup, key);
    return std::pair(rows.lambda[0], rows.mixed);
  };
  auto first = drawn({.seed = 1});
  EXPECT_EQ(drawn({.seed = 1}), first);
  for (BatchKey key :
       {BatchKey{.seed = 2}, BatchKey{.seed = 1, .epoch = 1},
        BatchKey{.seed = 1, .step = 1}, BatchKey{.seed = 1, .operation = 1}}) {
    EXPECT_NE(drawn(key).first, first.first);
    EXPECT_NE(drawn(key).second, first.second);
  }
  auto other_rank = drawn({.seed = 1, .rank = 1});
  EXPECT_EQ(other_rank.first, first.first) << "lambda is that of the step";
  EXPECT_NE(other_rank.second, first.second);
}

// Golden: a change of these numbers changes what everybody trains on.
TEST(Mixup, DrawsTheNumbersItAlwaysDrew) {
  Rows rows(8);
  rows.mix(*bound_mixup(0.4), {.seed = 3, .epoch = 2, .step = 1});
  EXPECT_THAT(rows.mixed, testing::ElementsAre(3, 2, 4, 7, 0, 1, 5, 6));
  EXPECT_NEAR(rows.lambda[0], 0.8519904F, 1e-6);
}

// Of Beta(a, a): mean 1/2, variance 1 / (4 (2 a + 1)).
TEST(Mixup, LambdaHasTheMomentsOfItsDistribution) {
  for (double alpha : {0.001, 0.05, 0.2, 0.5, 1.0, 2.0, 8.0, 1000.0}) {
    constexpr int kDraws = 40'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      Random random(7, 0, static_cast<std::uint64_t>(i), 0);
      double lambda = draw_beta(random, alpha);
      ASSERT_TRUE(lambda >= 0 && lambda <= 1) << alpha;
      sum += lambda;
      squares += (lambda - 0.5) * (lambda - 0.5);
    }
    double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws / variance, 1, 0.05) << alpha;
  }
}

struct BadCase {
  Mixup mixup;
  const char* expected;
};

TEST(Mixup, RefusesByNameWhatItCannotMix) {
  for (const BadCase& bad : {
           BadCase{{.outputs = {"z"}}, "no tensor 'z', only 'x', 'y'"},
           BadCase{{.outputs = {"class"}},
                   "'class' is int64, expected float32"},
           BadCase{{.outputs = {"text"}}, "'text' differ in length (packed)"},
           BadCase{{.outputs = {"lines"}}, "'lines' differ in length (padded)"},
           BadCase{{.outputs = {"x"}, .labels = {"x"}}, "named twice"},
           BadCase{{.outputs = {"x"}, .labels = {"q"}}, "no tensor 'q'"},
           BadCase{{.outputs = {"x"}, .alpha = 0}, "expected 0.001 to 1000"},
           BadCase{{.outputs = {"x"}, .alpha = -1}, "expected 0.001 to 1000"},
           BadCase{{.outputs = {"x"}, .alpha = NAN}, "expected 0.001 to 1000"},
       })
    try {
      make_mixup(bad.mixup)->bind(kOutputs);
      ADD_FAILURE() << bad.expected;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "loader.operations");
      EXPECT_THAT(error.what(), HasSubstr(bad.expected));
    }
}

std::vector<Operation> parsed(const std::string& json) {
  return parse_operations(Json::parse(json, "test"), "loader.operations");
}

TEST(Operations, AreReadFromAList) {
  auto operations = parsed(R"([{"mixup": ["x"], "alpha": 0.2},
                               {"mixup": ["y"], "side": "all"}])");
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_FALSE(operations[0].every_side);
  EXPECT_TRUE(operations[1].every_side);
  EXPECT_EQ(recipes_of(operations).array()[0].find("alpha")->dump(), "0.2");
  EXPECT_TRUE(parsed("[]").empty());
}

TEST(Operations, WrongSettingsAreNamed) {
  for (auto [json, expected] : {
           std::pair(R"({"mixup": ["x"]})", "expected a list of operations"),
           std::pair(R"([{"alpha": 1}])", "neither 'mixup'"),
           std::pair(R"([{"mixup": []}])", "loader.operations[0].mixup"),
           std::pair(R"([{"mixup": ["x"], "alpha": 0}])",
                     "loader.operations[0].alpha"),
           std::pair(R"([{"mixup": ["x"], "side": "test"}])",
                     "loader.operations[0].side"),
           std::pair(R"([{"mixup": ["x"], "alhpa": 1}])", "alpha"),
       })
    try {
      parsed(json);
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
}

}  // namespace
}  // namespace penstock
