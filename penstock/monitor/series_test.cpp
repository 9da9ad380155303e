#include "penstock/monitor/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "penstock/base/error.h"
#include "penstock/monitor/fake/kernel_tree.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// A machine whose counters the test moves.
class SeriesTest : public KernelTree {
 protected:
  void SetUp() override {
    KernelTree::SetUp();
    cpu(0, 0);
  }
  void cpu(int busy, int idle) {
    write("proc/stat", "cpu  " + std::to_string(busy) + " 0 0 " +
                           std::to_string(idle) + " 0 0 0 0 0 0\n");
  }
  static double number(const Json& json, const char* name, const char* key) {
    return json.find("metrics")->find(name)->find(key)->number();
  }
  static std::string findings(const Json& summary) {
    return summary.find("assessment")->dump();
  }
};

TEST_F(SeriesTest, SumsUpWhatItSampled) {
  MachineSeries series({.gpus = "none", .root = root_});
  for (int percent : {10, 20, 90}) {
    static int busy = 0, idle = 0;
    cpu(busy += percent, idle += 100 - percent);
    EXPECT_NEAR(series.sample().find("cpu_percent")->number(), percent, 1e-9);
  }
  const Json summary = series.summary();
  EXPECT_EQ(summary.find("samples")->integer(), 3);
  EXPECT_NEAR(number(summary, "cpu_percent", "mean"), 40, 1e-9);
  EXPECT_NEAR(number(summary, "cpu_percent", "min"), 10, 1e-9);
  EXPECT_NEAR(number(summary, "cpu_percent", "max"), 90, 1e-9);
  EXPECT_NEAR(number(summary, "cpu_percent", "p95"), 90, 1e-9);
  EXPECT_EQ(series.recent("cpu_percent").size(), 3u);
  EXPECT_THAT(findings(summary), HasSubstr("nothing stands out"));
  EXPECT_EQ(summary.find("no_gpu")->string(), "GPUs are not monitored");
}

TEST_F(SeriesTest, SaysWhyThereIsNoGpu) {
  EXPECT_TRUE(MachineSeries({.gpus = "synthetic", .root = root_})
                  .summary()
                  .find("no_gpu")
                  ->is_null());
  const Json found = MachineSeries({.root = root_}).summary();
  if (!found.find("gpus")->array().empty())
    GTEST_SKIP() << "this machine has one";
  EXPECT_THAT(found.find("no_gpu")->string(), HasSubstr("NVML"));
}

TEST_F(SeriesTest, WhatIsNotKnownIsMissingAndNeverZero) {
  std::filesystem::remove_all(root_ / "proc");
  MachineSeries series({.gpus = "none", .root = root_});
  EXPECT_EQ(series.sample().find("cpu_percent"), nullptr);
  const Json summary = series.summary();
  EXPECT_TRUE(summary.find("metrics")->object().empty());
  EXPECT_EQ(summary.find("not_known")->find("cpu_percent")->string(),
            "there is no /proc/stat");
  EXPECT_EQ(summary.find("not_known")->find("io_pressure_percent")->string(),
            "there is no /proc/pressure/io");
  EXPECT_THAT(findings(summary), HasSubstr("too few values are known"));
  EXPECT_THAT(findings(summary), HasSubstr("processors n/a, drives n/a"));
  EXPECT_TRUE(series.recent("cpu_percent").empty());
}

TEST_F(SeriesTest, LongOnesKeepABoundedNumberOfValues) {
  MachineSeries series({.gpus = "none", .root = root_});
  write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\n");
  for (int i = 0; i < 70'000; ++i) series.sample();
  EXPECT_NEAR(number(series.summary(), "memory_percent", "p95"), 50, 1e-9);
  EXPECT_EQ(series.recent("memory_percent").size(), 64u);
}

TEST_F(SeriesTest, SaysThatMemoryIsNearlyFull) {
  write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 4 kB\n");
  write("proc/pressure/memory", "some avg10=20.00 avg60=1\n");
  MachineSeries series({.gpus = "none", .root = root_});
  series.sample();
  EXPECT_THAT(findings(series.summary()), HasSubstr("memory is nearly full"));
  EXPECT_THAT(findings(series.summary()), HasSubstr("wait for memory"));
}

TEST_F(SeriesTest, SaysThatProcessorsAndDrivesAreBusyWithoutAGpu) {
  write("proc/pressure/cpu", "some avg10=40.00 avg60=1\n");
  write("proc/pressure/io", "some avg10=30.00 avg60=1\n");
  MachineSeries series({.gpus = "none", .root = root_});
  cpu(95, 5);
  series.sample();
  const std::string found = findings(series.summary());
  EXPECT_THAT(found, HasSubstr("the processors are busy"));
  EXPECT_THAT(found, HasSubstr("programs wait for a processor"));
  EXPECT_THAT(found, HasSubstr("programs wait for drives"));
  EXPECT_THAT(found, testing::Not(HasSubstr("nothing stands out")));
}

TEST_F(SeriesTest, FindingsOfTheCallersComeFirst) {
  MachineSeries series({.gpus = "none", .root = root_});
  const Json summary = series.summary(
      Json::parse(R"([{"finding": "a", "because": "b"}])", "test"));
  EXPECT_EQ(findings(summary), R"([{"finding": "a", "because": "b"}])");
}

/// What its workers do is in no number of the process itself.
TEST_F(SeriesTest, AProcessIsSummedUpWithThoseBelowIt) {
  const auto tick = static_cast<int>(::sysconf(_SC_CLK_TCK));
  auto process = [&](int number, int parent, int cpu_s, int read) {
    const std::string at = "proc/" + std::to_string(number);
    write(at + "/stat",
          std::to_string(number) + " (p) R " + std::to_string(parent) +
              " 1 1 0 -1 4194560 9 0 0 0 " + std::to_string(cpu_s * tick) +
              " 0 0 0 20 0 2 0 99 1000000 25 0\n");
    write(at + "/io", "rchar: 0\nread_bytes: " + std::to_string(read) +
                          "\nwrite_bytes: 0\n");
  };
  process(10, 1, 5, 0);
  process(11, 10, 7, 100);
  process(12, 11, 9, 0);
  process(13, 1, 9, 0);
  MachineSeries series({.process = 10, .gpus = "none", .root = root_});
  process(11, 10, 10'007, 1100);
  process(12, 11, 10'009, 0);
  process(13, 1, 90'000, 0);
  process(14, 10, 10'000, 2000);  // it has just begun
  const Json sample = series.sample();
  EXPECT_EQ(sample.find("process.children")->number(), 3);
  EXPECT_EQ(sample.find("process.cpu_percent")->number(), 0);
  const double cpu = sample.find("process.tree_cpu_percent")->number();
  const double read = sample.find("process.tree_read_bytes_s")->number();
  EXPECT_NEAR(read / cpu, 3000 / 30'000e2, 1e-9);
  EXPECT_EQ(sample.find("process.tree_resident_bytes")->number(),
            4 * sample.find("process.resident_bytes")->number());
  EXPECT_THAT(findings(series.summary()),
              HasSubstr("the process uses all processors"));
}

TEST_F(SeriesTest, HoldsASyntheticGpuWhereItIsAskedFor) {
  MachineSeries series({.gpus = "synthetic", .root = root_});
  const Json sample = series.sample();
  EXPECT_NE(sample.find("gpu0.utilisation_percent"), nullptr);
  EXPECT_NE(sample.find("gpu0.memory_percent"), nullptr);
  const Json summary = series.summary();
  EXPECT_EQ(summary.find("gpus")->dump(), R"(["synthetic GPU"])");
  EXPECT_EQ(summary.find("synthetic_gpu")->dump(), "true");
}

TEST(Series, LooksAtAProcessAndItsThreads) {
  MachineSeries series({.process = ::getpid(), .gpus = "none"});
  const Json sample = series.sample();
  EXPECT_NE(sample.find("process.cpu_percent"), nullptr);
  EXPECT_GT(sample.find("process.resident_bytes")->number(), 0);
  const Json summary = series.summary();
  const Json& process = *summary.find("process");
  EXPECT_EQ(process.find("pid")->integer(), ::getpid());
  EXPECT_FALSE(process.find("threads")->array().empty());
  EXPECT_TRUE(series.process_lives());
}

TEST(Series, NamesAProcessThatIsNotThere) {
  try {
    MachineSeries series({.process = 0x7ffffff0, .gpus = "none"});
    FAIL() << "it took a process that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "monitor.process");
  }
}

TEST(Series, ComparesTheMeansThatBothHave) {
  const Json before = Json::parse(
      R"({"metrics": {"a": {"mean": 1.0}, "b": {"mean": 2.0}}})", "test");
  const Json after = Json::parse(
      R"({"metrics": {"b": {"mean": 5.0}, "c": {"mean": 2.0}}})", "test");
  EXPECT_EQ(compare_summaries(before, after).dump(),
            R"({"b": {"before": 2.0, "after": 5.0, "change": 3.0}})");
  EXPECT_EQ(compare_summaries(Json(Json::Object{}), after).dump(), "{}");
}

}  // namespace
}  // namespace penstock
