#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/trainer/fake/kinds.h"
#include "penstock/trainer/fake/rerun_graph.h"
#include "penstock/trainer/fake/table_model.h"
#include "penstock/trainer/ranks/c10d_group.h"
#include "penstock/trainer/torch_memory.h"

// Runs with graphs end with the bits of runs without. The graphs are those of
// fake/rerun_graph.h, which see the batch only in the tensors that a recording
// saw.
namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSteps = 40;

using Sets = std::vector<std::string>;

class TrainedByGraphs : public testing::Test {
 protected:
  TrainedByGraphs() {
    char name[] = "/tmp/penstock-graphs-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~TrainedByGraphs() override {
    fail_host_allocation(0);
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<TableModel> table(const std::string& kind, const Sets& sets,
                                    bool graphs) const {
    Json job = job_of_kind(kind, folder_);
    job["loader"]["batch_size"] = 8;
    job["train"]["graphs"] = graphs ? "auto" : "off";
    for (const std::string& set : sets) apply_setting(job, set);
    return std::make_unique<TableModel>(rows_of_kinds(64), job);
  }

  static const SwitchInForce& in_force(const Stepper& stepper) {
    return *std::ranges::find(stepper.facts().in_force, "graphs",
                              &SwitchInForce::name);
  }
  static std::int64_t recorded(const Stepper& stepper) {
    return stepper.facts().about.find("graphs")->integer();
  }

  /// Why a model has no graphs although they are asked for.
  std::string refusal(const std::string& kind, const Sets& sets) const {
    return refusal(*table(kind, sets, true));
  }
  static std::string refusal(const TableModel& table) {
    const auto stepper = table.stepper();
    const SwitchInForce& told = in_force(*stepper);
    EXPECT_EQ(told.asked, Json("auto"));
    EXPECT_EQ(told.got, Json("off"));
    return told.why;
  }

  std::string folder_;
};

struct Case {
  const char* kind;
  Sets sets;
};

TEST_F(TrainedByGraphs, HasTheBitsOfARunWithout) {
  const Sets augmented{"model.dropout=0.3", "model.noise_db=2"};
  const GraphsOnCpu on_cpu;
  for (const Case& of : std::vector<Case>{
           {"set_position", {}},
           {"set_position", augmented},
           {"set_position",
            {"model.dropout=0.3", "train.micro_batch=4", "train.ema=0.9"}},
           {"set_position", {"model.dropout=0.3", "train.accumulate=3"}},
           {"tabular", {}},
           {"tabular", {"model.dropout=0.2", "train.ema=0.9"}},
           {"tabular", {"model.dropout=0.2", "train.accumulate=3"}},
           {"tabular", {"train.micro_batch=4", "train.accumulate=2"}},
           {"tabular", {"train.precision=float16", "train.micro_batch=3"}},
           {"tabular", {"train.precision=bfloat16", "loader.tail=pad"}},
           {"causal_lm", {}},
           {"causal_lm", {"train.accumulate=3", "train.ema=0.9"}},
           {"causal_lm", {"train.micro_batch=4"}}}) {
    SCOPED_TRACE(of.kind + std::string(" ") + testing::PrintToString(of.sets));
    RerunGraph::counts() = {};
    const auto without = table(of.kind, of.sets, false),
               with = table(of.kind, of.sets, true);
    const auto expected = without->stepper(), stepper = with->stepper();
    for (std::int64_t from = 0; from < kSteps; from += kSteps / 2) {
      EXPECT_EQ(with->take(*stepper, from, from + kSteps / 2),
                without->take(*expected, from, from + kSteps / 2));
      EXPECT_EQ(with->validate(*stepper).dump(),
                without->validate(*expected).dump());
    }
    expect_same_bits(stepper->save(), expected->save());
    EXPECT_EQ(in_force(*stepper).got, Json("auto"));
    EXPECT_GE(recorded(*stepper), 1);
    EXPECT_EQ(RerunGraph::counts().recorded, recorded(*stepper));
    EXPECT_GE(RerunGraph::counts().replayed, kSteps / 4);
    EXPECT_EQ(in_force(*expected).got, Json("off"));
  }
  EXPECT_EQ(RerunGraph::counts().alive, 0);
}

TEST_F(TrainedByGraphs, GoesOnFromASavedStateBitForBit) {
  const Sets sets{"model.dropout=0.2", "train.accumulate=3"};
  const auto without = table("tabular", sets, false);
  const auto whole = without->stepper();
  without->take(*whole, 0, kSteps);
  const GraphsOnCpu on_cpu;
  const auto with = table("tabular", sets, true);
  const auto first = with->stepper();
  with->take(*first, 0, 19);  // no multiple of 3, with graphs recorded
  const ModelState saved = first->save();
  with->take(*first, 19, 30);
  first->restore(saved);  // into memory that the graphs read
  with->take(*first, 19, kSteps);
  expect_same_bits(first->save(), whole->save());
  const auto second = with->stepper();
  second->restore(saved);
  with->take(*second, 19, kSteps);
  expect_same_bits(second->save(), whole->save());
}

TEST_F(TrainedByGraphs, OneThatCannotBeRecordedLeavesTheRunAsItWas) {
  for (const bool memory : {false, true}) {
    const GraphsOnCpu on_cpu;
    RerunGraph::counts().failing = 1;
    RerunGraph::counts().short_of_memory = memory;
    const Sets sets{"model.dropout=0.2", "train.accumulate=2"};
    const auto without = table("tabular", sets, false),
               with = table("tabular", sets, true);
    const auto expected = without->stepper(), stepper = with->stepper();
    EXPECT_EQ(with->take(*stepper, 0, kSteps),
              without->take(*expected, 0, kSteps));
    expect_same_bits(stepper->save(), expected->save());
    EXPECT_EQ(in_force(*stepper).got, Json("off"));
    EXPECT_THAT(in_force(*stepper).why,
                HasSubstr(memory ? "no memory" : "not permitted"));
    EXPECT_EQ(RerunGraph::counts().alive, 0);
    EXPECT_EQ(RerunGraph::counts().replayed, 0);
  }
}

// Whichever allocation of a step fails, in a replay or behind it.
TEST_F(TrainedByGraphs, AShortageDropsThemAndTheStepIsTaken) {
  const GraphsOnCpu on_cpu;
  const auto without = table("tabular", {}, false);
  const auto expected = without->stepper();
  without->take(*expected, 0, 13);
  const ModelState end = expected->save();
  const auto with = table("tabular", {}, true);
  std::int64_t allocations = 1;
  for (std::int64_t failing = 0; failing < allocations; failing += 9) {
    SCOPED_TRACE(failing);
    const auto stepper = with->stepper();
    with->take(*stepper, 0, 12);
    ASSERT_GE(RerunGraph::counts().alive, 1);
    fail_host_allocation(failing);
    with->take(*stepper, 12, 13);
    if (failing == 0) allocations = host_allocations();
    fail_host_allocation(0);
    expect_same_bits(stepper->save(), end);
    if (failing > 0) {
      EXPECT_EQ(RerunGraph::counts().alive, 0);
      EXPECT_FALSE(in_force(*stepper).why.empty());
      EXPECT_THAT(stepper->memory()->events(), testing::IsEmpty());
    }
  }
  EXPECT_GT(allocations, 20);
}

TEST_F(TrainedByGraphs, TrialsLeaveNoGraphsAndPeaksCountThem) {
  const GraphsOnCpu on_cpu;
  RerunGraph::counts().pool_bytes = 1 << 20;
  const auto with = table("tabular", {}, true);
  const auto stepper = with->stepper();
  for (int i = 0; i < 6; ++i) stepper->memory()->try_step(8);
  EXPECT_EQ(RerunGraph::counts().recorded, 0);
  with->take(*stepper, 0, 20);
  EXPECT_GE(stepper->memory()->peak().total(),
            recorded(*stepper) * RerunGraph::counts().pool_bytes);
}

TEST_F(TrainedByGraphs, SaysWhyThereAreNone) {
  EXPECT_EQ(refusal("tabular", {}), "the cpu does not support it");
  const GraphsOnCpu on_cpu;
  for (const char* kind : {"image_classifier", "spectrogram_classifier"})
    EXPECT_THAT(refusal(kind, {}), HasSubstr("which rows of a batch count"));
  EXPECT_THAT(refusal("causal_lm", {"train.gradient_checkpointing=true"}),
              HasSubstr("computed again"));
  Json packed = job_of_kind("causal_lm", folder_);
  packed["fields"] = Json::parse(
      R"({"y": {"tokens": {"column": "ids", "max_length": 16,
                           "vocab_size": 20}}})",
      "test");
  packed["train"]["graphs"] = "auto";
  EXPECT_THAT(refusal(TableModel(rows_of_kinds(64), packed)),
              HasSubstr("numbers of documents"));
}

TEST_F(TrainedByGraphs, SeveralRanksHaveNone) {
  const GraphsOnCpu on_cpu;
  const auto with = table("tabular", {}, true);
  const auto stepper = with->stepper();
  const auto group =
      open_ranks({.launcher = "environment", .master = "127.0.0.1", .port = 0});
  stepper->join(group.get());
  EXPECT_THAT(in_force(*stepper).why, HasSubstr("several ranks"));
  with->take(*stepper, 0, 8);
  EXPECT_EQ(RerunGraph::counts().recorded, 0);
  stepper->join(nullptr);
  group->leave();
}

}  // namespace
}  // namespace penstock
