#include "penstock/report/live_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "penstock/base/base.h"
#include "penstock/base/kernel_files.h"
#include "penstock/device/device.h"
#include "penstock/report/fake/sample_report.h"
#include "penstock/report/find_run.h"
#include "penstock/report/progress_file.h"
#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;
using namespace std::chrono_literals;

class LiveRunTest : public testing::Test {
 protected:
  LiveRunTest() {
    char name[] = "/tmp/penstock-live-XXXXXX";
    folder_ = ::mkdtemp(name);
    write("run.json",
          R"({"version": 1, "pid": )" + std::to_string(::getpid()) + "}");
  }
  ~LiveRunTest() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  /// A second in which the accelerator waited for its data for 3/4 of the time.
  static void tell(ProgressFile& file) {
    TimelineNumbers::Point point;
    point.parts = {.steps = 10,
                   .samples = 640,
                   .wall = 1s,
                   .compute = 250ms,
                   .wait_data = 750ms};
    point.loss.add(std::optional(2.5));
    file.add(point);
    file.step({.at = {.epoch = 1, .step = 30}, .taken = 94}, [&] {
      Snapshot window;
      window.parts = point.parts;
      window.stages = {
          {.name = "read", .workers = 1, .items = 640, .busy_wall = 900ms}};
      return window;
    });
  }
  std::string refused() const {
    try {
      LiveRun run(folder_.string());
    } catch (const Error& error) {
      return error.parts().code + ": " + error.parts().next;
    }
    return "";
  }

  std::filesystem::path folder_;
  const ProgressFile::Whole whole_{
      .epochs = 4, .steps_per_epoch = 63, .steps = 252};
};

TEST_F(LiveRunTest, TellsHowFarARunIsAndWhatLimitsIt) {
  LiveRun run(folder_.string());
  EXPECT_EQ(run.line(), "no step has been timed yet");
  EXPECT_EQ(run.verdict(), "");
  EXPECT_EQ(run.process(), ::getpid());
  ProgressFile file(folder_, whole_);
  tell(file);
  run.look();
  EXPECT_EQ(run.line(),
            "epoch 2/4 step 31/63 640 samples/s AU 25 % <- data 75 % loss 2.5");
  EXPECT_THAT(run.verdict(), HasSubstr("'read'"));
  EXPECT_THAT(run.numbers(), AllOf(Contains(Pair("run.au_percent", 25)),
                                   Contains(Pair("run.wait_data_percent", 75)),
                                   Contains(Pair("run.steps_taken", 94))));
  EXPECT_EQ(run.json().find("steps")->integer(), 252);
  EXPECT_EQ(text_in(run.json(), {"verdict", "limit"}), "data");
}

TEST_F(LiveRunTest, EndsWithTheReportWhoseVerdictItHas) {
  LiveRun run(folder_.string());
  { ProgressFile file(folder_, whole_); }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "progress.json"));
  write("report.json", sample_report().dump());
  run.look();
  EXPECT_TRUE(run.ended());
  EXPECT_EQ(run.verdict(), verdict_sentence(sample_report()));
  EXPECT_EQ(refused(), "monitor.run_ended: 'penstock explain " +
                           folder_.string() + "' shows what the run did");
}

TEST_F(LiveRunTest, FilesThatAreDamagedOrOfAnotherFormTellNothing) {
  for (const char* text : {"", "{", "[1]", R"({"numbers": 3, "epoch": "x"})"}) {
    write("progress.json", text);
    LiveRun run(folder_.string());
    EXPECT_THAT(run.line(), testing::Not(HasSubstr("step 1")));
    EXPECT_TRUE(run.numbers().empty());
    EXPECT_EQ(run.verdict(), "");
  }
}

TEST_F(LiveRunTest, SaysHowLongItHasHeardNothing) {
  write("run.json", R"({"version": 1, "pid": 2147483600})");
  write("progress.json", R"({"at": 1000, "epoch": 0, "step": 4})");
  EXPECT_THAT(
      LiveRun(folder_.string()).line(),
      AllOf(HasSubstr("last step "), HasSubstr("its process is not visible")));
}

TEST_F(LiveRunTest, AnotherProcessOfTheSameNumberIsNotTheRuns) {
  const std::string pid = std::to_string(::getpid());
  const std::int64_t began = process_began(::getpid()).value();
  write("run.json", R"({"pid": )" + pid + R"(, "pid_began": )" +
                        std::to_string(began) + "}");
  EXPECT_EQ(LiveRun(folder_.string()).process(), ::getpid());
  write("run.json", R"({"pid": )" + pid + R"(, "pid_began": )" +
                        std::to_string(began - 1) + "}");
  EXPECT_EQ(LiveRun(folder_.string()).process(), std::nullopt);
}

TEST_F(LiveRunTest, ARunThatWasKilledIsExplainedByWhatItHadMeasured) {
  auto killed = std::make_unique<ProgressFile>(folder_, whole_);
  tell(*killed);
  // Its first steps were faster than those of the window that was judged.
  write("steps.jsonl",
        "{\"epoch\": 0, \"seconds\": 1, \"rows\": 640}\n"
        "{\"epoch\": 0, \"seconds\": 1.1, \"rows\": 640}\n");
  const FoundRun found = find_run(folder_.string());
  EXPECT_EQ(number_in(found.report, {"au"}), 0.25);
  EXPECT_NEAR(*number_in(found.report, {"samples_per_s"}), 6400, 1);
  EXPECT_EQ(needed_rate(found.report), 640 / 0.25);
  EXPECT_EQ(text_in(found.report, {"verdict", "limit"}), "data");
  EXPECT_EQ(text_in(found.report, {"verdict", "stage"}), "read");
}

TEST_F(LiveRunTest, AFolderThatIsGoneEndsNoRun) {
  ProgressFile file(folder_ / "gone", whole_);
  tell(file);
  tell(file);
}

}  // namespace
}  // namespace penstock
