#include "penstock/report/metrics/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "penstock/base/base.h"
#include "penstock/base/crc32c.h"
#include "penstock/report/metrics/csv.h"
#include "penstock/report/metrics/prometheus.h"
#include "penstock/report/metrics/tensorboard.h"

namespace penstock {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

class MetricFiles : public testing::Test {
 protected:
  MetricFiles() {
    char name[] = "/tmp/penstock-metrics-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~MetricFiles() override { std::filesystem::remove_all(folder_); }
  std::string read(const char* name) const {
    return real_files().read(folder_ / name);
  }
  std::filesystem::path folder_;
};

TEST_F(MetricFiles, CsvHasOneLineForEachMomentAndNothingForWhatIsNotKnown) {
  CsvMetrics csv(folder_);
  csv.add(10, 1.5, {{"loss", 2.25}, {"au", kUnknown}});
  csv.add(20, 2.5, {{"loss", kUnknown}, {"au", 0.5}});
  csv.add_epoch(20, 3, {{"val_loss", 1}});
  csv.add_epoch(40, 4, {{"extra", 7}, {"val_loss", 0.5}});
  EXPECT_EQ(read("metrics.csv"),
            "time,step,loss,au\n1.5,10,2.25,\n2.5,20,,0.5\n");
  EXPECT_EQ(read("epochs.csv"), "time,step,val_loss\n3.0,20,1.0\n4.0,40,0.5\n");
}

TEST_F(MetricFiles, PrometheusReadsTheNewestOfEach) {
  PrometheusFile prometheus(folder_);
  prometheus.add(10, 1.5, {{"loss", 2.25}, {"au", kUnknown}});
  prometheus.add(20, 2.5, {{"loss", 2}, {"au", 0.5}});
  prometheus.add_epoch(20, 3, {{"val/acc", 1}});
  const std::string run = "{run=\"" + folder_.filename().string() + "\"} ";
  EXPECT_EQ(read("metrics.prom"),
            "# TYPE penstock_au gauge\npenstock_au" + run + "0.5\n" +
                "# TYPE penstock_epoch_val_acc gauge\npenstock_epoch_val_acc" +
                run + "1.0\n" + "# TYPE penstock_loss gauge\npenstock_loss" +
                run + "2.0\n" + "# TYPE penstock_steps gauge\npenstock_steps" +
                run + "20.0\n");
}

TEST_F(MetricFiles,
       EventFilesBeginWithTheirVersionInRecordsThatCheckThemselves) {
  TensorBoardFile events(folder_);
  events.add(3, 1.5, {{"loss", 2.25}, {"au", kUnknown}});
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    bytes = real_files().read(entry.path());
  auto number = [&](std::size_t at, auto value) {
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  };
  auto good_sum = [&](std::size_t at, std::size_t length) {
    const std::uint32_t sum =
        crc32c(std::as_bytes(std::span(bytes).subspan(at, length)));
    return number(at + length, std::uint32_t{}) ==
           ((sum >> 15 | sum << 17) + 0xa282ead8u);
  };
  std::size_t at = 0, records = 0;
  while (at < bytes.size()) {
    const auto length = number(at, std::uint64_t{});
    EXPECT_TRUE(good_sum(at, 8));
    EXPECT_TRUE(good_sum(at + 12, length));
    const std::string data = bytes.substr(at + 12, length);
    EXPECT_EQ(data.find("brain.Event:2") != data.npos, records == 0);
    if (records == 1) {
      EXPECT_NE(data.find("loss"), data.npos);
      EXPECT_EQ(data.find("au"), data.npos) << "what is not known is left out";
    }
    at += 16 + length;
    ++records;
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_EQ(records, 2u);
}

TEST_F(MetricFiles, ASinkThatCannotWriteEndsNoRun) {
  MetricSinks sinks({.csv = true}, folder_ / "gone");
  EXPECT_TRUE(sinks.any());
  set_log_level(LogLevel::off);
  sinks.add(1, {}, true);
  sinks.add_epoch(1, Json(Json::Object{}));
  EXPECT_FALSE(sinks.any());
  MetricSinks events({.tensorboard = true}, folder_ / "gone");
  set_log_level(LogLevel::warning);
  EXPECT_FALSE(events.any());
}

double value_of(const Metrics& metrics, const char* name) {
  for (const auto& [found, value] : metrics)
    if (found == name) return value;
  ADD_FAILURE() << name << " is missing";
  return 0;
}

TEST(MetricsOf, APieceOfTheTimeLineAreSharesOfItsTime) {
  using namespace std::chrono_literals;
  TimelineNumbers::Point point{.epoch = 2};
  point.parts = {.steps = 10,
                 .samples = 640,
                 .wall = 2s,
                 .compute = 1s,
                 .wait_data = 500ms,
                 .wait_copy = 300ms,
                 .host = 200ms};
  point.loss.add(std::optional(0.5));
  point.loss.add(std::optional(1.5));
  const Metrics metrics = metrics_of(point, true);
  EXPECT_EQ(value_of(metrics, "epoch"), 2);
  EXPECT_EQ(value_of(metrics, "loss"), 1);
  EXPECT_EQ(value_of(metrics, "samples_per_s"), 320);
  EXPECT_EQ(value_of(metrics, "au"), 0.5);
  EXPECT_EQ(value_of(metrics, "wait_data"), 0.25);
  EXPECT_NEAR(value_of(metrics, "host"), 0.1, 1e-9);
  EXPECT_TRUE(std::isnan(value_of(metrics, "power_w")));
  const Metrics no_steps = metrics_of(point, false);
  EXPECT_TRUE(std::isnan(value_of(no_steps, "au")));
  EXPECT_NEAR(value_of(no_steps, "host"), 0.6, 1e-9);
}

TEST(MetricsOf, AnEpochAreItsNumbersAndWhatItUsed) {
  const Metrics metrics = metrics_of(Json::parse(
      R"({"epoch": 1, "train_loss": 0.5, "val_loss": null,
          "use": {"cpus": {"mean": 1.5, "max": 2}}})",
      "epoch"));
  EXPECT_EQ(value_of(metrics, "train_loss"), 0.5);
  EXPECT_TRUE(std::isnan(value_of(metrics, "val_loss")));
  EXPECT_EQ(value_of(metrics, "cpus_mean"), 1.5);
  EXPECT_EQ(value_of(metrics, "cpus_max"), 2);
}

}  // namespace
}  // namespace penstock
