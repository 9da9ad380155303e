#include "penstock/report/find_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "penstock/base/base.h"
#include "penstock/base/temporary.h"
#include "penstock/report/fake/sample_report.h"
#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FindRunTest : public testing::Test {
 protected:
  FindRunTest() {
    char name[] = "/tmp/penstock-find-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~FindRunTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "") const {
    return (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  void begin_run() const {
    write("run.json", R"({"version": 1, "settings": {"device_used": "sim"},
                          "machine": {"cpus": 2}})");
  }
  /// The code and the reason of the refusal.
  std::string refused(const std::string& where) const {
    try {
      find_run(where);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_FALSE(error.parts().next.empty());
      return error.parts().code + ": " + error.parts().why + "; " +
             error.parts().next;
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(FindRunTest, FindsARunByItsFolderALinkAndItsReport) {
  write("report.json", sample_report().dump());
  std::filesystem::create_directory_symlink(folder_, path("latest"));
  for (const std::string& where :
       {path(), path("latest"), path("latest/"), path("report.json")}) {
    const FoundRun found = find_run(where);
    EXPECT_EQ(found.report, sample_report()) << where;
    EXPECT_TRUE(found.notes.empty()) << where;
  }
}

TEST_F(FindRunTest, SaysThatARunWasInterrupted) {
  Json report = sample_report();
  report["interrupted"] = true;
  write("report.json", report.dump());
  EXPECT_THAT(find_run(path()).notes,
              ElementsAre(HasSubstr("run was interrupted")));
}

TEST_F(FindRunTest, SaysThatARunIsOfANewerVersionAndShowsWhatItKnows) {
  Json report = sample_report();
  report["version"] = 2;
  report["verdict"]["actions"] = "something new";
  write("report.json", report.dump());
  const FoundRun found = find_run(path());
  EXPECT_THAT(found.notes,
              ElementsAre(HasSubstr("newer Penstock (version 2, this program "
                                    "knows 1)")));
  EXPECT_EQ(number_in(found.report, {"au"}), 0.5);
}

TEST_F(FindRunTest, TellsWhatTheStepsOfAnUnfinishedRunTell) {
  begin_run();
  write("steps.jsonl",
        R"({"epoch": 0, "step": 0, "rows": 8, "seconds": 1.0, "loss": 4.0}
{"epoch": 0, "step": 1, "rows": 8, "seconds": 2.0, "loss": 2.0}
{"epoch": 1, "step": 0, "rows": 8, "seconds": 5.0}
{"epoch": 1, "step": 1, "ro)");
  const FoundRun found = find_run(path());
  EXPECT_EQ(number_in(found.report, {"steps"}), 3);
  EXPECT_EQ(number_in(found.report, {"samples"}), 24);
  EXPECT_EQ(number_in(found.report, {"samples_per_s"}), 4);
  const Json::Array& epochs = list_in(found.report, {"epochs"});
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(number_in(epochs[0], {"train_loss"}), 3);
  EXPECT_EQ(number_in(epochs[1], {"seconds"}), 3);
  EXPECT_EQ(number_in(found.report, {"au"}), std::nullopt);
  EXPECT_EQ(text_in(found.report, {"settings", "device_used"}), "sim");
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("3 steps are written")));
}

/// The first four are queued while the device does the first of them.
TEST_F(FindRunTest, StepsThatAreQueuedAtOnceHaveNoPartInTheRate) {
  begin_run();
  std::string lines;
  for (int step = 0; step < 24; ++step)
    lines += R"({"epoch": 0, "step": )" + std::to_string(step) +
             R"(, "rows": 8, "seconds": )" +
             std::to_string(step < 4 ? 1 + 0.001 * step : step - 2.0) + "}\n";
  write("steps.jsonl", lines);
  EXPECT_NEAR(*number_in(find_run(path()).report, {"samples_per_s"}), 8, 0.01);
}

TEST_F(FindRunTest, StepsAreShownWhereRunJsonIsDamagedOrMissing) {
  write("steps.jsonl", R"({"epoch": 0, "step": 0, "rows": 8, "seconds": 1.0}
{"epoch": 0, "step": 1, "rows": 8, "seconds": 2.0}
)");
  FoundRun found = find_run(path());
  EXPECT_EQ(number_in(found.report, {"steps"}), 2);
  EXPECT_THAT(
      found.notes,
      testing::Contains(HasSubstr("holds no run.json; its steps are shown")));
  write("run.json", R"({"version": 1, "sett)");
  found = find_run(path());
  EXPECT_THAT(found.notes,
              testing::Contains(HasSubstr("run.json is damaged: ")));
}

TEST_F(FindRunTest, ARunThatHasTakenNoStepIsOneTo) {
  begin_run();
  const FoundRun found = find_run(path());
  EXPECT_EQ(number_in(found.report, {"steps"}), 0);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("0 steps are written")));
}

TEST_F(FindRunTest, ADamagedReportLeavesWhatTheOtherFilesTell) {
  begin_run();
  write("report.json", sample_report().dump().substr(0, 300));
  const FoundRun found = find_run(path());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("report.json is damaged: ")));
  EXPECT_EQ(found.report.find("unfinished")->dump(), "true");
}

TEST_F(FindRunTest, RefusesWhatIsNoRun) {
  EXPECT_THAT(refused(path("nothing")),
              HasSubstr("explain.no_run: there is no such file or folder"));
  EXPECT_THAT(refused(path()), HasSubstr("neither report.json nor run.json"));
  write("other.json", R"({"some": "thing"})");
  EXPECT_THAT(refused(path("other.json")), HasSubstr("no \"verdict\""));
  write("list.json", "[1]");
  EXPECT_THAT(refused(path("list.json")),
              HasSubstr("a list, not a JSON object"));
  write("text.json", "some text");
  EXPECT_THAT(refused(path("text.json")), HasSubstr("explain.no_run: "));
  write("run.json", "{");
  EXPECT_THAT(refused(path()), HasSubstr("run.json is damaged"));
}

TEST_F(FindRunTest, NamesTheLatestRunToWhoNamesTheFolderOfAll) {
  std::filesystem::create_directory(path("a-run"));
  std::filesystem::create_directory_symlink("a-run", path("latest"));
  EXPECT_THAT(refused(path()), HasSubstr("latest"));
}

}  // namespace
}  // namespace penstock
