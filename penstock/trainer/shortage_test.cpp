#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "penstock/base/tensor_limit.h"
#include "penstock/trainer/fake/kinds.h"
#include "penstock/trainer/fake/table_model.h"
#include "penstock/trainer/torch_memory.h"

// Steps of every kind of model run out of memory at some allocation, are
// repeated in smaller micro-batches, and must end with the bits of a run that
// had that size without any shortage. 24 are drawn, or as many as
// PENSTOCK_TEST_SHORTAGES says; where that is set, every allocation of a step
// of every kind fails, too.
namespace penstock {
namespace {

const char* wished() { return std::getenv("PENSTOCK_TEST_SHORTAGES"); }

class ShortageTest : public testing::Test {
 protected:
  ShortageTest() {
    char name[] = "/tmp/penstock-shortage-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ShortageTest() override {
    fail_host_allocation(0);
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<TableModel> model(
      const std::string& kind, int rows, std::int64_t batch,
      const std::vector<std::string>& sets = {}) const {
    Json job = job_of_kind(kind, folder_);
    job["loader"]["batch_size"] = batch;
    for (const std::string& set : sets) apply_setting(job, set);
    return std::make_unique<TableModel>(rows_of_kinds(rows), job);
  }

  std::string folder_;
};

/// Takes a step as the loop of a run does.
void take_guarded(TableModel& table, Stepper& stepper, std::int64_t step,
                  std::int64_t rows) {
  for (;;) {
    try {
      table.take(stepper, step, step + 1);
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
    }
    ASSERT_TRUE(stepper.memory()->give_way(step, rows));
  }
}

constexpr std::int64_t kBatch = 4, kSteps = 4;

/// The end of a run that has half the batch at once from `from` on.
ModelState halved_from(TableModel& table, std::int64_t from) {
  const auto stepper = table.stepper();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    if (step == from) stepper->memory()->use_micro_batch(kBatch / 2);
    table.take(*stepper, step, step + 1);
  }
  return stepper->save();
}

/// A model of a kind that is put back to its beginning again and again.
struct Victim {
  std::unique_ptr<TableModel> table;
  std::unique_ptr<Stepper> stepper;
  ModelState first;
  std::map<std::int64_t, ModelState> expected;  // by the step that is short
};

/// Lets the `share`-th part of the allocations of a step fail.
void fail_one(Victim& of, std::int64_t step, double share) {
  Stepper& stepper = *of.stepper;
  auto [expected, unknown] = of.expected.try_emplace(step);
  if (unknown) expected->second = halved_from(*of.table, step);
  auto begin = [&] {
    stepper.restore(of.first);
    stepper.memory()->use_micro_batch(INT64_MAX);
    for (std::int64_t before = 0; before < step; ++before)
      of.table->take(stepper, before, before + 1);
  };
  begin();
  fail_host_allocation(0);
  of.table->take(stepper, step, step + 1);
  const std::int64_t all = host_allocations();
  begin();
  const std::int64_t number =
      1 + static_cast<std::int64_t>(share * static_cast<double>(all));
  SCOPED_TRACE("allocation " + std::to_string(number) + " of " +
               std::to_string(all));
  const std::size_t events = stepper.memory()->events().size();
  const std::int64_t held = host_tensor_bytes();
  fail_host_allocation(number);
  EXPECT_THROW(of.table->take(stepper, step, step + 1), Error);
  EXPECT_EQ(host_tensor_bytes(), held);
  fail_host_allocation(0);
  ASSERT_TRUE(stepper.memory()->give_way(step, kBatch));
  for (; step < kSteps; ++step) of.table->take(stepper, step, step + 1);
  EXPECT_EQ(stepper.memory()->events().size(), events + 1);
  ModelState found = stepper.save();
  found.json = expected->second.json;  // the size in force is part of it
  expect_same_bits(found, expected->second);
}

TEST_F(ShortageTest, AStepThatRanOutEndsAsOneThatHadSmallerMicroBatches) {
  const char* wish = wished();
  const std::uint64_t tries =
      wish == nullptr ? 24 : std::strtoul(wish, nullptr, 10);
  std::map<std::string, Victim> victims;
  std::vector<std::string> names;
  for (const auto& [kind, of] : kinds())
    for (const char* more : {"train.accumulate=1", "train.accumulate=2"})
      names.push_back(kind + " " + more);
  for (std::uint64_t i = 0; i < tries; ++i) {
    Random random(5, i, 0, 0);
    const std::string& name = names[random.below(names.size())];
    const auto step = static_cast<std::int64_t>(random.below(kSteps));
    SCOPED_TRACE(name + ", step " + std::to_string(step));
    auto [victim, unknown] = victims.try_emplace(name);
    Victim& of = victim->second;
    if (unknown) {
      const std::size_t space = name.find(' ');
      of.table = model(name.substr(0, space), 24, kBatch,
                       {name.substr(space + 1), "train.ema=0.9"});
      of.stepper = of.table->stepper();
      of.first = of.stepper->save();
    }
    fail_one(of, step, random.uniform());
  }
}

TEST_F(ShortageTest, AnyAllocationOfAStepMayFail) {
  const bool campaign = wished() != nullptr;
  std::vector<std::string> names = {"tabular", "set_position", "causal_lm"};
  if (campaign) {
    names.clear();
    for (const auto& [kind, of] : kinds()) names.push_back(kind);
  }
  for (const std::string& kind : names) {
    SCOPED_TRACE(kind);
    Victim of;
    of.table = model(kind, 24, kBatch, {"train.ema=0.9"});
    of.stepper = of.table->stepper();
    of.first = of.stepper->save();
    fail_host_allocation(0);
    of.table->take(*of.stepper, 0, 1);
    const std::int64_t all = host_allocations();
    ASSERT_GT(all, 20);
    const std::int64_t tries = campaign ? all : std::min<std::int64_t>(all, 50);
    for (std::int64_t i = 0; i < tries; ++i)
      fail_one(of, 0,
               (static_cast<double>(i) + 0.5) / static_cast<double>(tries));
  }
}

/// The optimiser makes the last allocations of a step: of weights in
/// channels_last, too, none when some of the weights have moved.
TEST_F(ShortageTest, TheLastAllocationsOfAStepMayFail) {
  const bool campaign = wished() != nullptr;
  for (const char* kind : {"image_classifier", "spectrogram_classifier"}) {
    SCOPED_TRACE(kind);
    Victim of;
    of.table = model(kind, 24, kBatch, {"train.ema=0.9", "train.clip_norm=1"});
    of.stepper = of.table->stepper();
    of.first = of.stepper->save();
    for (int last = 0; last < 8; last += campaign ? 1 : 2)
      fail_one(of, 0, 0.999 - 0.002 * last);
  }
}

std::map<std::string, std::vector<float>> floats_in(const ModelState& state,
                                                    const std::string& prefix) {
  std::map<std::string, std::vector<float>> all;
  for (const NamedTensor& tensor : state.tensors)
    if (tensor.name.starts_with(prefix) &&
        tensor.view.dtype == Dtype::float32) {
      const auto* first = reinterpret_cast<const float*>(tensor.view.data);
      all[tensor.name] = {first, first + elements_of(tensor.view.shape)};
    }
  return all;
}

/// The largest difference, beside the largest number of its tensor.
double relative(const ModelState& one, const ModelState& other,
                const std::string& prefix) {
  const auto a = floats_in(one, prefix), b = floats_in(other, prefix);
  EXPECT_FALSE(a.empty());
  double most = 0, size = 0;
  for (const auto& [name, numbers] : a)
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      most = std::max<double>(most, std::abs(numbers[i] - b.at(name)[i]));
      size = std::max<double>(size, std::abs(numbers[i]));
    }
  return most / size;
}

ModelState in_micro_batches(TableModel& table, std::int64_t rows,
                            std::int64_t steps) {
  const auto stepper = table.stepper();
  stepper->memory()->use_micro_batch(rows);
  table.take(*stepper, 0, steps);
  return stepper->save();
}

TEST_F(ShortageTest, MicroBatchesHaveTheGradientsAndWeightsOfTheirBatch) {
  for (const char* kind : {"tabular", "set_position", "causal_lm"}) {
    SCOPED_TRACE(kind);
    // Of two steps that move the weights together, the first leaves its
    // gradients in the state.
    const auto first = model(kind, 64, 32, {"train.accumulate=2"});
    const auto whole = model(kind, 64, 32);
    const ModelState gradients = in_micro_batches(*first, 32, 1);
    const ModelState weights = in_micro_batches(*whole, 32, 20);
    for (const std::int64_t rows : {8, 1}) {
      SCOPED_TRACE(rows);
      EXPECT_LE(
          relative(in_micro_batches(*first, rows, 1), gradients, "gradient."),
          1e-6);
      const ModelState found = in_micro_batches(*whole, rows, 20);
      const auto a = floats_in(found, "model."),
                 b = floats_in(weights, "model.");
      std::size_t near = 0, all = 0;
      for (const auto& [name, numbers] : a)
        for (std::size_t i = 0; i < numbers.size(); ++i, ++all) {
          const double off = std::abs(numbers[i] - b.at(name)[i]);
          EXPECT_LE(off, 1e-4);
          near += off <= 1e-6 ? 1 : 0;
        }
      EXPECT_GE(static_cast<double>(near), 0.999 * static_cast<double>(all));
    }
  }
}

TEST_F(ShortageTest, ARealLimitIsKeptAndTheRunEnds) {
  const auto table = model("causal_lm", 64, 32);
  std::int64_t room = 0;  // for the tensors and the batches
  {
    limited_bytes().most_batches = 0;
    const auto stepper = table->stepper();
    stepper->memory()->use_micro_batch(8);
    table->take(*stepper, 0, 2);
    room = host_tensor_peak() + limited_bytes().most_batches;
  }
  const ModelState expected = in_micro_batches(*table, 8, 4);
  const TensorLimit limit(static_cast<std::size_t>(room) + 64);
  const auto stepper = table->stepper();
  for (std::int64_t step = 0; step < 4; ++step)
    take_guarded(*table, *stepper, step, 32);
  EXPECT_THAT(stepper->memory()->events(),
              testing::ElementsAre(testing::Field(&OomEvent::to, 16),
                                   testing::Field(&OomEvent::to, 8)));
  EXPECT_LE(host_tensor_peak(), room + 64);
  ModelState found = stepper->save();
  EXPECT_EQ(*found.json.find("micro_batch"), Json(8));
  found.json = expected.json;
  expect_same_bits(found, expected);
}

TEST_F(ShortageTest, ALimitBelowTheModelEndsBeforeAnyStep) {
  const auto table = model("tabular", 24, kBatch);
  const TensorLimit limit(500);
  try {
    const auto stepper = table->stepper();
    FAIL() << "the model fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_EQ(error.parts().code, "trainer.limit_too_low");
  }
}

TEST_F(ShortageTest, ExactRefusesMicroBatchesOfBatchNormalization) {
  for (const char* oom : {"guard", "exact"}) {
    const auto table = model(
        "spectrogram_classifier", 24, kBatch,
        {std::string("train.oom=") + oom, "train.gradient_checkpointing=true"});
    const auto stepper = table->stepper();
    const bool guard = std::string(oom) == "guard";
    EXPECT_EQ(stepper->memory()->give_way(0, kBatch), guard);
    ASSERT_EQ(stepper->memory()->events().size(), guard ? 1u : 0u);
    if (guard) {
      EXPECT_FALSE(stepper->memory()->events()[0].exact);
    }
  }
}

std::vector<std::string> actions_of(const StepMemory& memory) {
  std::vector<std::string> actions;
  for (const OomEvent& event : memory.events())
    actions.emplace_back(name_of(event.action));
  return actions;
}

TEST_F(ShortageTest, GivesWayInOrderAndNamesARowThatDoesNotFit) {
  const auto table = model("causal_lm", 24, kBatch);
  const auto stepper = table->stepper();
  StepMemory& memory = *stepper->memory();
  while (memory.give_way(0, kBatch)) {
  }
  EXPECT_THAT(actions_of(memory),
              testing::ElementsAre("micro_batch", "micro_batch",
                                   "gradient_checkpointing"));
  fail_host_allocation(5);
  EXPECT_THROW(table->take(*stepper, 0, 1), Error);
  fail_host_allocation(0);
  EXPECT_EQ(memory.row_alone(), 0);
}

TEST_F(ShortageTest, WhereHalvesTakeMoreTheNextThingIsGivenUpAtOnce) {
  // Eleven million parameters, and pictures of 8 x 8 pixels: a second gradient
  // takes more than all activations.
  const auto table = model("image_classifier", 24, 8);
  const auto stepper = table->stepper();
  StepMemory& memory = *stepper->memory();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(memory.give_way(0, 8));
  EXPECT_THAT(actions_of(memory),
              testing::ElementsAre("micro_batch", "gradient_checkpointing",
                                   "micro_batch"));
  EXPECT_EQ(memory.micro_batch(), 2);
}

TEST_F(ShortageTest, WhatIsFixedIsKnownWithoutATrial) {
  const auto table = model("image_classifier", 24, 8, {"train.ema=0.9"});
  const auto stepper = table->stepper();
  StepMemory& memory = *stepper->memory();
  const MemoryByOwner fixed = memory.fixed(), tried = memory.try_step(2);
  EXPECT_EQ(fixed.activations, 0);
  EXPECT_EQ(fixed.parameters, tried.parameters);
  EXPECT_EQ(fixed.gradients, tried.gradients);
  EXPECT_EQ(fixed.optimizer, tried.optimizer);
  // The reason to know it: batch normalization refuses one row.
  EXPECT_THROW(memory.try_step(1), Error);
}

TEST_F(ShortageTest, WhatAShortageChangedIsPartOfTheState) {
  const auto table = model("causal_lm", 24, kBatch);
  const auto stepper = table->stepper();
  while (stepper->memory()->give_way(0, kBatch)) {
  }
  fail_host_allocation(1);
  table->validate(*stepper);
  fail_host_allocation(0);
  EXPECT_EQ(actions_of(*stepper->memory()).back(), "validation_rows");
  const ModelState state = stepper->save();
  EXPECT_EQ(*state.json.find("gradient_checkpointing"), Json(true));
  const std::int64_t looked_at = state.json.find("validation_rows")->integer();
  EXPECT_LT(looked_at, kBatch);

  const auto resumed = table->stepper(), fresh = table->stepper();
  resumed->restore(state);
  StepMemory& memory = *resumed->memory();
  EXPECT_EQ(memory.micro_batch(), 1);
  EXPECT_FALSE(memory.give_way(0, kBatch));
  EXPECT_EQ(memory.try_step(2).total(), stepper->memory()->try_step(2).total());
  EXPECT_EQ(resumed->save().json, state.json);
  // Fewer rows at once hold less.
  begin_host_tensor_peak();
  table->validate(*fresh);
  const std::int64_t whole = host_tensor_peak();
  begin_host_tensor_peak();
  table->validate(*resumed);
  EXPECT_LT(host_tensor_peak(), whole);
  EXPECT_EQ(actions_of(memory), std::vector<std::string>());
}

TEST_F(ShortageTest, APeakIsThatOfTheStepsSinceItWasTaken) {
  const auto table = model("tabular", 64, 32);
  const auto stepper = table->stepper();
  StepMemory& memory = *stepper->memory();
  table->take(*stepper, 0, 1);
  const std::int64_t whole = memory.take_peak().total();
  memory.use_micro_batch(2);
  table->take(*stepper, 1, 2);
  EXPECT_LT(memory.take_peak().total(), whole);
  EXPECT_EQ(memory.peak().total(), whole);
}

TEST_F(ShortageTest, BatchesCountAgainstTheLimit) {
  const auto table = model("tabular", 64, 32);
  const auto stepper = table->stepper();
  table->take(*stepper, 0, 1);
  const LimitedBytes& held = limited_bytes();
  const auto peak = static_cast<std::size_t>(stepper->memory()->peak().total());
  const auto most =
      peak + static_cast<std::size_t>(held.most_batches.load()) + 1000;
  const TensorLimit limit(most);
  table->take(*stepper, 1, 2);
  const LimitedBatch larger(1 << 20);
  EXPECT_TRUE(larger.too_much());
  EXPECT_THROW(table->take(*stepper, 2, 3), Error);
}

TEST_F(ShortageTest, AValidationThatRanOutSeesTheSame) {
  for (const char* kind :
       {"tabular", "spectrogram_classifier", "set_position", "causal_lm"}) {
    SCOPED_TRACE(kind);
    const auto table = model(kind, 24, kBatch);
    const auto stepper = table->stepper();
    fail_host_allocation(0);
    Json expected = table->validate(*stepper);
    const std::int64_t all = host_allocations();
    const std::int64_t apart = std::max<std::int64_t>(1, all / 20);
    for (std::int64_t number = 1; number <= all; number += apart) {
      const auto fresh = table->stepper();
      fail_host_allocation(number);
      Json found;
      try {
        found = table->validate(*fresh);
      } catch (const Error&) {
        continue;  // outside of a look: what all rows give at the end
      }
      EXPECT_NEAR(found.find("val_loss")->number(),
                  expected.find("val_loss")->number(), 1e-5)
          << number;
    }
    fail_host_allocation(0);
  }
}

TEST_F(ShortageTest, TheEstimateIsNearWhatStepsTake) {
  for (const auto& [kind, of] : kinds())
    for (const std::int64_t batch : {4, 32}) {
      SCOPED_TRACE(kind + ", " + std::to_string(batch));
      const auto table = model(kind, 64, batch);
      const std::int64_t others = host_tensor_bytes();
      const auto stepper = table->stepper();
      const auto estimate = estimate_memory(*stepper, batch);
      table->take(*stepper, 0, 2);
      const auto counted =
          static_cast<double>(stepper->memory()->peak().total() - others);
      EXPECT_NEAR(static_cast<double>(estimate->total() - others) / counted, 1,
                  0.1);
    }
}

TEST_F(ShortageTest, ATrialLeavesNoTrace) {
  for (const auto& [kind, of] : kinds()) {
    SCOPED_TRACE(kind);
    const auto table = model(kind, 24, kBatch, {"train.accumulate=2"});
    const auto tried = table->stepper(), other = table->stepper();
    table->take(*tried, 0, 1), table->take(*other, 0, 1);
    const std::int64_t held = host_tensor_bytes();
    tried->memory()->try_step(3);
    fail_host_allocation(9);
    EXPECT_THROW(tried->memory()->try_step(2), Error);
    fail_host_allocation(0);
    EXPECT_EQ(host_tensor_bytes(), held);
    expect_same_bits(tried->save(), other->save());
    table->take(*tried, 1, 3), table->take(*other, 1, 3);
    expect_same_bits(tried->save(), other->save());
  }
}

}  // namespace
}  // namespace penstock
