#include "penstock/loader/bad_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "penstock/dataset/fake/spoiled_dataset.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// What a run handed out: the number in the place of each bad sample, by epoch.
struct Outcome {
  std::map<std::pair<std::int64_t, SampleId>, std::int64_t> in_place_of;
  std::int64_t batches = 0;
  std::optional<Error> error;
};

class BadSamplesTest : public testing::TestWithParam<int> {
 protected:
  Outcome run(std::function<bool(SampleId)> bad, std::int64_t rows = 10'000) {
    auto set = std::make_shared<SpoiledDataset>(rows, std::move(bad));
    Outcome outcome;
    try {
      Loader loader(set, options_, *device_);
      while (std::optional<Batch> batch = loader.next()) {
        batch->wait();
        ++outcome.batches;
        add(*batch, outcome);
      }
    } catch (const Error& error) {
      outcome.error = error;
    }
    return outcome;
  }

  void add(const Batch& batch, Outcome& outcome) {
    const auto* numbers =
        reinterpret_cast<const std::int64_t*>(batch.tensors()[0].view.data);
    for (const RejectedSample& rejected : batch.rejected()) {
      auto row = static_cast<std::size_t>(rejected.row);
      EXPECT_EQ(rejected.why, "found a rotten number");
      outcome.in_place_of[{batch.at().epoch, rejected.sample}] = numbers[row];
      if (options_.on_bad == OnBad::substitute) {
        EXPECT_EQ(batch.ids()[row], rejected.substitute);
        EXPECT_EQ(numbers[row], rejected.substitute + 1);
        continue;
      }
      EXPECT_EQ(batch.tensors()[1].name, "weight");
      const auto* weights =
          reinterpret_cast<const float*>(batch.tensors()[1].view.data);
      EXPECT_EQ(weights[row], 0);
      EXPECT_EQ(numbers[row], 0);
    }
  }

  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  LoaderOptions options_{.batch_size = 100,
                         .workers = GetParam(),
                         .on_bad = OnBad::substitute,
                         .batches = 250};
};

bool few(SampleId id) { return id % 2'000 == 7; }

TEST_P(BadSamplesTest, StopNamesTheSampleInTheBatchsTurn) {
  options_.on_bad = OnBad::stop;
  options_.shuffle = false;
  Outcome outcome = run([](SampleId id) { return id == 1234; });
  EXPECT_EQ(outcome.batches, 12);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::transform);
  EXPECT_EQ(outcome.error->parts().code, "data.bad_sample");
  EXPECT_THAT(outcome.error->parts().where,
              HasSubstr("sample 1234, field 'number', epoch 0, step 12"));
  EXPECT_EQ(outcome.error->parts().why, "found a rotten number");
}

TEST_P(BadSamplesTest, AnotherSampleStandsInAndIsNamed) {
  Outcome outcome = run(few);
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.batches, 250);
  EXPECT_EQ(outcome.in_place_of.size(), 5u + 5u + 2u)
      << "each epoch meets each bad sample once, the last is half one";
}

TEST_P(BadSamplesTest, TheSameOnesStandInOnAnyNumberOfRanks) {
  options_.batches = 100;  // one epoch
  Outcome alone = run(few);
  Outcome together;
  for (int rank = 0; rank < 4; ++rank) {
    options_.rank = {rank, 4};
    together.in_place_of.merge(run(few).in_place_of);
  }
  EXPECT_EQ(together.in_place_of, alone.in_place_of);
  EXPECT_EQ(alone.in_place_of.size(), 5u);
}

// The rank that the sample falls to reports it, at the step at which one
// process would; the others have their rows of that step, and no error before
// it.
TEST_P(BadSamplesTest, TheSameErrorEndsTheSameStepOnAnyNumberOfRanks) {
  options_.on_bad = OnBad::stop;
  options_.batch_size = 640;
  const Outcome alone = run(few, 64'000);
  ASSERT_TRUE(alone.error);
  int ended = 0;
  for (int rank = 0; rank < 64; ++rank) {
    options_.rank = {rank, 64};
    const Outcome share = run(few, 64'000);
    EXPECT_GE(share.batches, alone.batches) << "rank " << rank;
    if (share.batches > alone.batches) continue;
    ++ended;
    ASSERT_TRUE(share.error);
    EXPECT_EQ(share.error->kind(), alone.error->kind());
    EXPECT_EQ(std::string(share.error->what()), alone.error->what());
  }
  EXPECT_EQ(ended, 1);
}

TEST_P(BadSamplesTest, AMaskedRowIsZerosAndWeighsNothing) {
  options_.on_bad = OnBad::mask;
  Outcome outcome = run(few);
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.batches, 250);
  EXPECT_FALSE(outcome.in_place_of.empty());
}

TEST_P(BadSamplesTest, MoreThanOneInAThousandOfAnEpochIsAnError) {
  options_.on_bad = OnBad::mask;
  Outcome outcome = run([](SampleId id) { return id % 900 == 1; });
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->parts().code, "data.too_many_bad");
  EXPECT_THAT(outcome.error->parts().why,
              HasSubstr("11 of epoch 0, at most 10 are allowed"));
  EXPECT_EQ(outcome.in_place_of.size(), 10u);
}

TEST_P(BadSamplesTest, OneBatchToLookAtMayHaveAnyNumber) {
  options_.on_bad = OnBad::mask;
  options_.batches = 1;
  Outcome outcome = run([](SampleId id) { return id % 2 == 1; });
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.batches, 1);
}

TEST_P(BadSamplesTest, ThatErrorStaysAndCostsNoPlaceInTheEpoch) {
  options_.on_bad = OnBad::mask;
  auto set = std::make_shared<SpoiledDataset>(
      10'000, [](SampleId id) { return id % 900 == 1; });
  Loader loader(set, options_, *device_);
  try {
    while (loader.next()) {
    }
    FAIL();
  } catch (const Error&) {
  }
  const Position at = loader.position();
  for (int again = 0; again < 3; ++again) {
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "data.too_many_bad");
      EXPECT_THAT(error.parts().why, HasSubstr("11 of epoch 0"));
    }
    EXPECT_EQ(loader.position(), at) << "the batch was not handed out";
  }
}

TEST_P(BadSamplesTest, ARankOfManyStopsForMoreThanChance) {
  options_.on_bad = OnBad::mask;
  options_.batches = 1'000;  // of 10 samples each: an epoch
  options_.batch_size = 640;
  auto stopped = [&](std::int64_t every) {
    int count = 0;
    for (int rank = 0; rank < 64; rank += 7) {
      options_.rank = {rank, 64};
      count += run([every](SampleId id) { return id % every == 1; }, 640'000)
                       .error.has_value()
                   ? 1
                   : 0;
    }
    return count;
  };
  EXPECT_EQ(stopped(1'000), 0) << "just the share";
  EXPECT_EQ(stopped(100), 10) << "ten times the share";
}

TEST(BadSamples, TheShareOfARankIsThatOfAllAndWhatChanceAdds) {
  EXPECT_EQ(BadSamples::most_of(10'000, 1), 10);
  EXPECT_EQ(BadSamples::most_of(10'001, 1), 11);
  EXPECT_EQ(BadSamples::most_of(5, 1), 1);
  EXPECT_EQ(BadSamples::most_of(10'000, 64), 3);
  EXPECT_EQ(BadSamples::most_of(64'000'000, 64), 1'128);
}

TEST_P(BadSamplesTest, MoreThanAHundredInARowAreAnError) {
  options_.on_bad = OnBad::mask;
  options_.shuffle = false;
  options_.batches = 20;
  Outcome outcome =
      run([](SampleId id) { return id >= 950 && id < 1051; }, 1'000'000);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->parts().why,
              HasSubstr("101 in a row, at most 100"));
  outcome = run([](SampleId id) { return id >= 950 && id < 1050; }, 1'000'000);
  EXPECT_FALSE(outcome.error);
}

TEST_P(BadSamplesTest, WhereNearlyAllAreBadNothingStandsIn) {
  Outcome outcome = run([](SampleId id) { return id >= 0; });
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->parts().code, "data.too_many_bad");
  EXPECT_EQ(outcome.batches, 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, BadSamplesTest, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
