#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/transforms/fake/noisy.h"

// Rows that are kept in several tiers at once: wherever they are, a batch has
// the same bytes.

namespace penstock {
namespace {

using testing::HasSubstr;

struct Case {
  const char* device;
  int workers;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << " " << c.workers << " workers";
}

/// Passes the first tensor on.
RowFunction passing(const Dataset& of) {
  const Output& first = of.outputs()[0];
  return {.layout = layout_of_tensors({{.name = "passed",
                                        .dtype = first.dtype,
                                        .row_shape = first.row_shape}}),
          .fingerprint = "passing",
          .call = [](const RowCall& call) {
            std::memcpy(call.out[0].data, call.in[0].data, call.out[0].bytes());
          }};
}

class MixedTiers : public testing::TestWithParam<Case> {
 protected:
  MixedTiers() {
    dir_ = std::filesystem::path(testing::TempDir()) /
           ("mixed-" + std::to_string(::getpid()) + "-" + GetParam().device +
            std::to_string(GetParam().workers));
    words_.add_number();
    words_.add("noisy", std::make_shared<Noisy>("noisy", "number"));
    words_.table.version = "1";
    words_.options.cache = "auto";
    words_.options.store_dir = dir_.string();
    words_.options.split = {.train = 0.8, .val = 0.2};
    row_bytes_ = layout_of(words_.options.fields).row_bytes;
    options_ = {
        .tail = Tail::pad, .batch_size = 32, .workers = GetParam().workers};
    options_.batches = 9;
  }
  ~MixedTiers() override { std::filesystem::remove_all(dir_); }

  void give(std::optional<std::size_t> TierBudgets::*tier, std::size_t rows) {
    words_.options.budgets.*tier = rows * row_bytes_;
  }

  std::vector<SeenBatch> run(Device& device) {
    set_ = words_.prepare(device);
    return seen_batches(shown(set_, device), options_, device);
  }
  /// All rows in host memory, on one thread.
  std::vector<SeenBatch> run_plainly() {
    std::unique_ptr<Device> cpu = open_for_test("cpu");
    WordsDataset words = words_;
    words.options.cache = "ram";
    words.options.budgets = {};
    LoaderOptions options = options_;
    options.workers = 0;
    return seen_batches(shown(words.prepare(*cpu), *cpu), options, *cpu);
  }
  std::shared_ptr<const Dataset> shown(std::shared_ptr<const TableDataset> set,
                                       Device& device) const {
    if (!mapped_) return set;
    RowFunction function = passing(*set);
    return std::make_shared<FunctionDataset>(std::move(set),
                                             std::move(function), device);
  }
  std::vector<TierRows> places() const { return set_->plan().places; }

  std::filesystem::path dir_;
  std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
  bool on_sim_ = std::string(GetParam().device) == "sim";
  WordsDataset words_;
  std::size_t row_bytes_ = 0;
  LoaderOptions options_;
  bool mapped_ = false;
  std::shared_ptr<const TableDataset> set_;
};

TEST_P(MixedTiers, EachTakesRowsUntilItIsFull) {
  give(&TierBudgets::device, 100);
  give(&TierBudgets::pinned, 50);
  give(&TierBudgets::ram, 70);
  give(&TierBudgets::disk, 0);
  EXPECT_EQ(run(*device_), run_plainly());
  if (on_sim_)
    EXPECT_EQ(places(), (std::vector<TierRows>{{Tier::device, 100},
                                               {Tier::pinned, 50},
                                               {Tier::ram, 70},
                                               {Tier::none, 80}}));
  else
    EXPECT_EQ(places(),
              (std::vector<TierRows>{{Tier::ram, 70}, {Tier::none, 230}}));
  words_.options.budgets.disk.reset();
  EXPECT_EQ(run(*device_), run_plainly());
  EXPECT_EQ(places().back().tier, Tier::disk);
  EXPECT_EQ(run(*device_), run_plainly()) << "from the store";
  EXPECT_EQ(places().back().tier, Tier::disk);
}

TEST_P(MixedTiers, ThePlanSaysWhatEachTierTakes) {
  const std::size_t before = device_->memory().free;
  give(&TierBudgets::device, 120);
  give(&TierBudgets::pinned, 0);
  give(&TierBudgets::disk, 0);
  set_ = words_.prepare(*device_);
  const TierPlan& plan = set_->plan();
  if (!on_sim_) {
    EXPECT_EQ(plan.tier, Tier::ram);
    return;
  }
  EXPECT_EQ(plan.lines[0].device_bytes, before - device_->memory().free);
  EXPECT_THAT(plan.text(), HasSubstr("* device: "));
  EXPECT_THAT(plan.text(), HasSubstr("holds 120 of 300 rows"));
  EXPECT_THAT(plan.text(), HasSubstr("holds 180 of 300 rows"));
}

TEST_P(MixedTiers, MemoryThatAnotherTakesMeanwhileIsPlannedAround) {
  if (!on_sim_) return;
  constexpr std::size_t kRing = 64 << 10;
  words_.table = WordsDataset(20'000).table;
  words_.table.version = "1";
  const std::vector<SeenBatch> right = run_plainly();
  words_.options.ring_bytes = [](const DatasetFacts&) {
    return RingBytes{.device = kRing};
  };
  const std::size_t left = (kRing + 5000 * row_bytes_) * 10 / 8;
  for (const char* cache : {"auto", "device"})
    for (bool stored : {false, true}) {
      auto device = open_device(
          {.kind = "sim", .memory_gib = 0.01, .virtual_time = true});
      words_.options.cache = "disk";
      if (stored) run(*device);  // for a later run
      words_.options.cache = cache;
      words_.options.budgets = {.pinned = 0, .ram = 0};
      if (!stored) words_.options.budgets.disk = 0;
      Buffer other;
      words_.options.planned = [&](const TierPlan&) {
        if (other.size() == 0)
          other = device->allocate(device->memory().free - left);
      };
      if (cache == std::string("device")) {
        EXPECT_THROW(run(*device), Error) << "where it was asked for";
      } else {
        EXPECT_EQ(run(*device), right);
        EXPECT_EQ(places(), (std::vector<TierRows>{
                                {Tier::device, 5000},
                                {stored ? Tier::disk : Tier::none, 15'000}}));
      }
      set_.reset();
      words_.options.planned = nullptr;
      words_.options.budgets = {};
      std::filesystem::remove_all(dir_);
    }
}

TEST_P(MixedTiers, WhereTheDeviceReadsAllOfThemNothingIsStaged) {
  const std::size_t before = device_->memory().free;
  give(&TierBudgets::device, 120);
  set_ = words_.prepare(*device_);
  if (!on_sim_) return;
  ASSERT_EQ(set_->plan().tier, Tier::pinned);
  EXPECT_EQ(set_->plan().lines[0].device_bytes,
            before - device_->memory().free);
  EXPECT_EQ(set_->plan().lines[1].host_bytes, 180 * row_bytes_);
}

TEST_P(MixedTiers, RandomMixturesHaveOneOrderAndOneSetOfBytes) {
  std::set<std::set<Tier>> met;
  const std::uint64_t configurations = 125;  // 1,000 over all cases
  for (std::uint64_t seed = 0; seed < configurations; ++seed) {
    Random random(seed, 0, static_cast<std::uint64_t>(GetParam().workers), 0);
    words_.options.budgets = {};
    for (auto tier : {&TierBudgets::device, &TierBudgets::pinned,
                      &TierBudgets::ram, &TierBudgets::disk})
      if (random.below(4) != 0)
        give(tier, random.below(3) == 0         ? 0
                   : tier == &TierBudgets::disk ? 3000
                                                : 1 + random.below(300));
    options_.tail = random.below(2) == 0 ? Tail::pad : Tail::exact;
    options_.shuffle = random.below(4) != 0;
    options_.seed = random.below(100);
    options_.batch_size = 1 + static_cast<std::int64_t>(random.below(70));
    options_.side = random.below(4) == 0 ? Side::val : Side::train;
    options_.readers = static_cast<int>(random.below(3));
    options_.batches = 5;
    mapped_ = random.below(4) == 0;
    ASSERT_EQ(run(*device_), run_plainly()) << "seed " << seed << "\n"
                                            << set_->plan().text();
    std::set<Tier> tiers;
    for (const TierRows& place : places()) tiers.insert(place.tier);
    met.insert(tiers);
  }
  EXPECT_GE(met.size(), on_sim_ ? 12u : 4u) << "mixtures";
}

TEST_P(MixedTiers, ABudgetForLessThanABatchIsRefused) {
  words_.options.batch_rows = 32;
  give(&TierBudgets::ram, 31);
  try {
    run(*device_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "cache.budget");
    EXPECT_THAT(error.what(), HasSubstr("loader.cache.ram_gib"));
  }
}

TEST_P(MixedTiers, ABudgetOfTheDiskHoldsAllRowsWhereTheyMustGoThere) {
  give(&TierBudgets::disk, 200);
  run(*device_);
  EXPECT_NE(places().back().tier, Tier::none) << "it is not needed";
  give(&TierBudgets::device, 50);
  give(&TierBudgets::pinned, 0);
  give(&TierBudgets::ram, 50);
  try {
    run(*device_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "cache.budget");
    EXPECT_THAT(error.what(), HasSubstr("loader.cache.disk_gib"));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MixedTiers,
                         testing::Values(Case{"cpu", 0}, Case{"cpu", 1},
                                         Case{"cpu", 2}, Case{"cpu", 8},
                                         Case{"sim", 0}, Case{"sim", 1},
                                         Case{"sim", 2}, Case{"sim", 8}));

}  // namespace
}  // namespace penstock
