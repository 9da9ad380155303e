#include "penstock/session/live_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;

/// A loop whose meters say what the test wants them to say.
class LiveTunerTest : public testing::Test {
 protected:
  LiveTunerTest() {
    std::vector<Field> fields = parse_fields(
        Json::parse(R"({"value": {"columns": ["value"]}})", "test"), "fields");
    rows_ = std::make_shared<IndexedDataset>(
        IndexedOptions{.fields = fields},
        counting_store(2000, requests_of(fields)));
  }

  void open(const std::string& settings = "{}", int workers = 1) {
    job_.document = Json(
        Json::Object{{"loader", Json::parse(settings, "the test's settings")}});
    options_ = {.batch_size = 32, .workers = workers};
    loader_ = std::make_unique<Loader>(rows_, options_, *device_);
    tuner_ = LiveTuner::of(job_, *rows_, options_, *loader_, clock_);
  }
  /// Steps of 100 ms in which the loop waits for half of the time, for readers
  /// that give as much as there are of them.
  void take(int steps) {
    for (int i = 0; i < steps; ++i) {
      clock_.sleep_until(clock_.now() + 100ms);
      StepParts step{.steps = 1,
                     .samples = 32,
                     .wall = 100ms,
                     .compute = 50ms,
                     .wait_data = 50ms};
      all_.parts += step;
      const int readers = loader_->threads()->readers;
      reading_.workers = readers;
      reading_.items += 32;
      reading_.calls += calls_;
      reading_.busy_wall += 100ms * readers;
      all_.stages = {reading_};
      tuner_->step(
          *loader_,
          [this] {
            ++asked_;
            return all_;
          },
          [this](const std::string& line) { lines_.push_back(line); });
    }
  }

  VirtualClock clock_;
  Job job_;
  LoaderOptions options_;
  std::shared_ptr<Device> device_ = open_device({.kind = "sim"});
  std::shared_ptr<const Dataset> rows_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<LiveTuner> tuner_;
  Snapshot all_;
  StageNumbers reading_{.name = "read", .pool = "readers"};
  int calls_ = 0;  // of a batch
  int asked_ = 0;
  std::vector<std::string> lines_;
};

TEST_F(LiveTunerTest, RaisesTheReadersOfASlowSourceWindowByWindow) {
  open();
  ASSERT_NE(tuner_, nullptr);
  take(30);  // enough time, too few steps
  EXPECT_EQ(loader_->threads()->readers, 4);
  EXPECT_EQ(asked_, 1);
  take(1);
  EXPECT_EQ(loader_->threads()->readers, 8);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0],
            "loader.readers 4 -> 8: 'readers' gives 320 samples/s, the lowest "
            "(predicted gain 100 %)");
  EXPECT_EQ(tuner_->tuner().decisions().size(), 1u);
  // The rate did not grow: it looks once more, then takes them back.
  take(6 + 31 + 31);
  EXPECT_EQ(loader_->threads()->readers, 4);
  EXPECT_TRUE(tuner_->tuner().decisions()[0].undone);
}

TEST_F(LiveTunerTest, SetsReadersAndBatchesAheadAsOneChange) {
  open();
  calls_ = 2;
  take(31);
  EXPECT_EQ(loader_->threads()->readers, 8);
  EXPECT_EQ(loader_->threads()->prefetch, 8);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(
      lines_[0],
      testing::StartsWith("loader.readers 4 -> 8, loader.prefetch 2 -> 8: "));
  take(18 + 31 + 31);  // what is under way, and two looks
  EXPECT_EQ(loader_->threads()->readers, 4);
  EXPECT_EQ(loader_->threads()->prefetch, 2);
}

TEST_F(LiveTunerTest, AWindowGoesOnAcrossShortEpochs) {
  open();
  for (int epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(loader_->threads()->readers, 4);
    take(8);
    tuner_->pause();
    clock_.sleep_until(clock_.now() + 10s);  // a validation
  }
  EXPECT_GT(loader_->threads()->readers, 4);
}

TEST_F(LiveTunerTest, TheNextLoaderOfTheLoopGetsTheSameThreads) {
  open();
  take(31);
  loader_ = std::make_unique<Loader>(rows_, options_, *device_);
  tuner_->use(*loader_);
  EXPECT_EQ(loader_->threads()->readers, 8);
}

TEST_F(LiveTunerTest, TheVerdictIsAboutWhatWasLeftInTheEnd) {
  open();
  take(31);
  EXPECT_FALSE(tuner_->settled(all_));  // no step since
  take(40);
  std::optional<Snapshot> settled = tuner_->settled(all_);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->parts.steps, 40);
  EXPECT_EQ(settled->stages[0].items, 40 * 32);
}

TEST_F(LiveTunerTest, LeavesAloneWhatTheJobSets) {
  open(R"({"readers": 4, "workers": 1})");
  ASSERT_NE(tuner_, nullptr);
  for (const Knob& knob : tuner_->tuner().knobs())
    EXPECT_EQ(knob.name, "loader.prefetch");
  open(R"({"readers": 4, "workers": 1, "prefetch": 2})");
  EXPECT_EQ(tuner_, nullptr);
}

TEST_F(LiveTunerTest, IsOffWhereTheJobSaysSoAndWhereThereIsNothingToTune) {
  job_.loading.tune = false;
  open();
  EXPECT_EQ(tuner_, nullptr);
  job_.loading.tune = true;
  job_.device.virtual_time = true;
  open();
  EXPECT_EQ(tuner_, nullptr);
  job_.device.virtual_time = false;
  open("{}", 0);
  EXPECT_EQ(tuner_, nullptr);
}

TEST_F(LiveTunerTest, AWindowHasTheSamplesThatWereTakenInIt) {
  EXPECT_EQ(since({.samples = 700}, {.samples = 1000}).samples, 300);
}

TEST_F(LiveTunerTest, WorkersStayWithinTheProcessorsOfTheJob) {
  job_.loading.cpus = 1;
  open();
  for (const Knob& knob : tuner_->tuner().knobs())
    if (knob.name == "loader.workers") {
      EXPECT_EQ(knob.most, 1);
    }
}

}  // namespace
}  // namespace penstock
