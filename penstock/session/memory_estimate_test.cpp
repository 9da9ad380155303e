#include "penstock/session/memory_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/session/not_finite.h"

namespace penstock {
namespace {

/// A model of which two rows need memory that one does not.
class ModelOfLines final : public Stepper, public StepMemory {
 public:
  explicit ModelOfLines(std::int64_t limit) : Stepper({}), limit_(limit) {
    memory_ = this;
  }
  void step(const std::shared_ptr<Batch>&, Stream&, std::int64_t) override {}
  std::vector<double> losses(bool) override { return {}; }

  MemoryByOwner try_step(std::int64_t rows) override {
    tried.push_back(rows);
    if (rows < least)
      throw not_finite_error("layer 'norm'", "one value per channel", "more");
    const std::int64_t activations = 100 * rows + (rows > 1 ? 5000 : 0);
    if (activations > limit_)
      throw Error(ErrorKind::out_of_memory, {.code = "test.short"});
    return {.parameters = 40,
            .gradients = 30,
            .optimizer = 20,
            .activations = activations};
  }
  MemoryByOwner fixed() const override { return {}; }
  MemoryByOwner peak() const override { return {}; }
  MemoryByOwner take_peak() override { return {}; }
  bool give_way(std::int64_t, std::int64_t) override { return false; }
  std::optional<std::int64_t> row_alone() const override { return {}; }

  std::vector<std::int64_t> tried;
  std::int64_t least = 1;  ///< rows that it can learn from

 private:
  const std::int64_t limit_;
};

TEST(MemoryEstimate, ContinuesALineThroughSizesNearTheBatch) {
  ModelOfLines model(1 << 20);
  const auto estimate = estimate_memory(model, 64);
  EXPECT_THAT(model.tried, testing::ElementsAre(32, 16));
  EXPECT_EQ(estimate->per_row, 100);
  EXPECT_EQ(estimate->bytes.activations, 100 * 64 + 5000);
  EXPECT_EQ(estimate->total(), 90 + 100 * 64 + 5000);
}

TEST(MemoryEstimate, TakesFewerRowsWhereMemoryIsShort) {
  ModelOfLines model(6000);
  const auto estimate = estimate_memory(model, 64);
  EXPECT_THAT(model.tried, testing::ElementsAre(32, 16, 8, 4));
  EXPECT_EQ(estimate->bytes.activations, 100 * 64 + 5000);
}

TEST(MemoryEstimate, RunsTwoMicroBatchesAsTheyAre) {
  ModelOfLines model(1 << 20);
  model.use_micro_batch(4);
  estimate_memory(model, 64);
  EXPECT_EQ(model.tried.front(), 8);
}

TEST(MemoryEstimate, NeedsNoFewerRowsThanTheModelCanLearnFrom) {
  ModelOfLines model(1 << 20);
  model.least = 2;
  const auto estimate = estimate_memory(model, 2);
  EXPECT_THAT(model.tried, testing::ElementsAre(2, 1));
  EXPECT_EQ(estimate->bytes.activations, 100 * 2 + 5000);
}

TEST(MemoryEstimate, ThrowsWhereOneRowDoesNotFit) {
  ModelOfLines model(10);
  EXPECT_THROW(estimate_memory(model, 4), Error);
}

}  // namespace
}  // namespace penstock
