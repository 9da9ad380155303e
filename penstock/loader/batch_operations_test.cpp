#include "penstock/loader/batch_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "penstock/dataset/fake/fake_dataset.h"
#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// Adds the rank's number of rows to `value`, on the host alone.
class OnHostAlone final : public BatchOperation {
 public:
  std::unique_ptr<BoundOperation> bind(
      const std::vector<Output>& outputs) const override {
    class Bound final : public BoundOperation {
     public:
      explicit Bound(const std::vector<Output>& outputs)
          : BoundOperation(outputs, {find_output(outputs, "value", "test")},
                           {}) {}
      void apply(const OperationBatch& batch,
                 OperationScratch&) const override {
        auto* values = reinterpret_cast<float*>(batch.tensors[0]);
        for (std::int64_t row : batch.live)
          values[row] += static_cast<float>(batch.rows);
      }
    };
    return std::make_unique<Bound>(outputs);
  }
  bool queues_on(MemoryKind memory) const override {
    return memory == MemoryKind::cpu;
  }
  Json recipe() const override { return Json{Json::Object{}}; }
};

/// Fails in the third batch.
class Failing final : public BatchOperation {
 public:
  std::unique_ptr<BoundOperation> bind(
      const std::vector<Output>& outputs) const override {
    class Bound final : public BoundOperation {
     public:
      explicit Bound(const std::vector<Output>& outputs)
          : BoundOperation(outputs, {}, {}) {}
      void apply(const OperationBatch& batch,
                 OperationScratch&) const override {
        if (batch.key.step == 2) throw std::runtime_error("cannot mix this");
      }
    };
    return std::make_unique<Bound>(outputs);
  }
  Json recipe() const override { return Json{Json::Object{}}; }
};

class BatchOperationsTest : public testing::TestWithParam<TierCase> {
 protected:
  BatchOperationsTest() {
    device_ = open_for_test(GetParam().device);
    fake_.options.cache = GetParam().cache;
    options_ = {.batch_size = 64, .workers = GetParam().workers, .batches = 20};
    add({.outputs = {"items", "value"}, .alpha = 0.5});
  }
  void add(Mixup mixup) {
    options_.operations.push_back({.kind = make_mixup(std::move(mixup))});
  }

  std::vector<SeenBatch> run() {
    auto set = fake_.prepare(*device_);
    return seen_batches(set, options_, *device_);
  }
  /// The same on one thread of the host.
  std::vector<SeenBatch> run_plainly() {
    device_ = open_for_test("cpu");
    fake_.options.cache = "ram";
    options_.workers = 0;
    return run();
  }

  std::unique_ptr<Device> device_;
  FakeDataset fake_;
  LoaderOptions options_;
};

// Row `id` of the counting table has the value id.
TEST_P(BatchOperationsTest, MixesTheRowsOfEachBatch) {
  options_.operations.clear();
  add({.outputs = {"value"}, .labels = {"items_mask"}});
  std::set<float> lambdas;
  for (const SeenBatch& batch : run()) {
    auto values = batch.numbers<float>("value");
    auto lambda = batch.numbers<float>("mixup_lambda");
    lambdas.insert(lambda[0]);
    std::multiset<float> partners;
    for (std::size_t row = 0; row < 64; ++row) {
      auto own = static_cast<float>(batch.ids[row]);
      EXPECT_EQ(lambda[row], lambda[0]);
      float partner = (values[row] - lambda[0] * own) / (1 - lambda[0]);
      float nearest = std::round(partner);
      if (lambda[0] < 0.9F) {
        EXPECT_NEAR(partner, nearest, 0.01);
        partners.insert(nearest);
      }
    }
    if (lambda[0] < 0.9F) {
      std::multiset<float> ids;
      for (SampleId id : batch.ids) ids.insert(static_cast<float>(id));
      EXPECT_EQ(partners, ids);
    }
  }
  EXPECT_EQ(lambdas.size(), 20u) << "one for each batch";
}

TEST_P(BatchOperationsTest, GivesTheSameBytesWhereverItRuns) {
  add({.outputs = {"value"}, .labels = {"items_mask"}});
  options_.tail = Tail::pad;
  std::vector<SeenBatch> seen = run();
  EXPECT_EQ(seen, run_plainly());
  options_.start = {0, 5};
  options_.batches = 3;
  EXPECT_EQ(run().front(), seen[5]) << "after a restart too";
}

TEST_P(BatchOperationsTest, PaddingStaysZeros) {
  options_.tail = Tail::pad;
  options_.start = {0, 15};
  options_.batches = 1;
  SeenBatch last = run().front();
  auto values = last.numbers<float>("value");
  ASSERT_LT(last.ids.back(), 0);
  for (std::size_t row = 0; row < 64; ++row)
    EXPECT_EQ(values[row] == 0, last.ids[row] < 0);
}

TEST_P(BatchOperationsTest, IsForTrainUnlessEverySideIsNamed) {
  fake_.options.split = {.train = 0.5, .val = 0.5};
  options_.side = Side::val;
  options_.batches = 2;
  std::vector<SeenBatch> plain = run();
  for (const SeenBatch& batch : plain) {
    auto values = batch.numbers<float>("value");
    for (std::size_t row = 0; row < 64; ++row)
      EXPECT_EQ(values[row], static_cast<float>(batch.ids[row]));
  }
  options_.operations[0].every_side = true;
  EXPECT_NE(run()[0].bytes["value"], plain[0].bytes["value"]);
}

TEST_P(BatchOperationsTest, LambdaIsTheSameOnAllRanks) {
  options_.operations.clear();
  add({.outputs = {"value"}, .labels = {"items_mask"}});
  options_.batches = 3;
  std::vector<SeenBatch> alone = run();
  for (int rank = 0; rank < 4; ++rank) {
    options_.rank = {rank, 4};
    std::vector<SeenBatch> share = run();
    for (std::size_t b = 0; b < share.size(); ++b) {
      EXPECT_EQ(share[b].numbers<float>("mixup_lambda")[0],
                alone[b].numbers<float>("mixup_lambda")[0]);
      EXPECT_TRUE(std::equal(share[b].ids.begin(), share[b].ids.end(),
                             alone[b].ids.begin() + 16 * rank));
    }
  }
}

TEST_P(BatchOperationsTest, AnErrorComesInTheBatchsTurn) {
  options_.operations = {{.kind = std::make_shared<Failing>()}};
  if (GetParam().kept_on_sim())
    return;  // there it runs as a kernel, which cannot throw
  auto set = fake_.prepare(*device_);
  Loader loader(set, options_, *device_);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(loader.next());
  for (int i = 0; i < 2; ++i) try {
      loader.next();
      FAIL();
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot mix this"));
    }
}

TEST_P(BatchOperationsTest, WithoutOperationsNothingIsAdded) {
  options_.operations.clear();
  auto set = fake_.prepare(*device_);
  Loader loader(set, options_, *device_);
  EXPECT_EQ(loader.tensors().size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(
    All, BatchOperationsTest,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "ram", 1},
                    TierCase{"cpu", "ram", 2}, TierCase{"cpu", "none", 8},
                    TierCase{"sim", "ram", 0}, TierCase{"sim", "ram", 8},
                    TierCase{"sim", "none", 2}, TierCase{"sim", "device", 0},
                    TierCase{"sim", "device", 1},
                    TierCase{"sim", "device", 8}));

std::string refused(const LoaderOptions& options, const Dataset& set) {
  try {
    BatchOperations operations(options, set.facts());
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "loader.operations");
    return error.what();
  }
  return "nothing is wrong";
}

TEST(BatchOperations, RefusesTensorsOfOneName) {
  auto device = open_device({.kind = "cpu"});
  FakeDataset fake;
  auto set = fake.prepare(*device);
  LoaderOptions options;
  for (int i = 0; i < 2; ++i)
    options.operations.push_back(
        {.kind = make_mixup({.outputs = {"value"}, .labels = {"items_mask"}})});
  EXPECT_THAT(refused(options, *set), HasSubstr("two tensors named"));
}

TEST(BatchOperations, RefusesPackedSamplesByName) {
  auto device = open_device({.kind = "cpu"});
  WordsDataset words;
  words.add_letters(Lengths::packed);
  auto set = words.prepare(*device);
  LoaderOptions options{
      .operations = {{.kind = make_mixup({.outputs = {"text"}})}}};
  EXPECT_THAT(refused(options, *set), HasSubstr("(packed)"));
}

TEST(BatchOperations, OfTheHostAloneAreRefusedWhereTheDeviceHasTheRows) {
  auto device = open_device({.kind = "sim", .virtual_time = true});
  FakeDataset fake;
  fake.options.cache = "device";
  auto set = fake.prepare(*device);
  LoaderOptions options{
      .operations = {{.kind = std::make_shared<OnHostAlone>()}}};
  try {
    Loader loader(set, options, *device);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "loader.operations");
    EXPECT_THAT(error.what(), HasSubstr("\"loader.cache\": \"ram\""));
  }
  fake.options.batches_on_host = true;
  EXPECT_THROW(fake.prepare(*device), Error) << "asked for by the plan too";
  fake.options.cache = "auto";
  set = fake.prepare(*device);
  EXPECT_EQ(set->plan().tier, Tier::ram);
  options.batches = 1;
  EXPECT_TRUE(Loader(set, options, *device).next());
}

TEST(BatchOperations, NextIntoGivesTheSameBytes) {
  auto device = open_device({.kind = "cpu"});
  FakeDataset fake;
  auto set = fake.prepare(*device);
  LoaderOptions options{
      .batch_size = 32,
      .workers = 0,
      .operations = {{.kind = make_mixup({.outputs = {"value"}})}},
      .batches = 2};
  Loader expected(set, options, *device), into(set, options, *device);
  std::unique_ptr<Stream> stream = device->make_stream();
  std::vector<float> items(32 * 8), mask(32 * 4), value(32);
  std::vector<TensorView> to;
  for (auto [data, shape] : {std::pair(items.data(), Shape{32, 4, 2}),
                             std::pair(mask.data(), Shape{32, 4}),
                             std::pair(value.data(), Shape{32, 1})})
    to.push_back({.data = reinterpret_cast<std::byte*>(data), .shape = shape});
  while (std::optional<Batch> batch = expected.next()) {
    batch->wait();
    ASSERT_TRUE(into.next_into(to, *stream));
    for (std::size_t t = 0; t < to.size(); ++t)
      EXPECT_EQ(
          std::memcmp(to[t].data, batch->tensors()[t].view.data, to[t].bytes()),
          0);
  }
}

}  // namespace
}  // namespace penstock
