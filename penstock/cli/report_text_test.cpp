#include "penstock/cli/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "penstock/report/fake/sample_report.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const Json& report, std::vector<std::string> notes = {}) {
  return run_text({.report = report, .notes = std::move(notes)});
}

/// In characters.
std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    longest = std::max(longest,
                       static_cast<std::size_t>(std::ranges::count_if(
                           line, [](char c) { return (c & 0xc0) != 0x80; })));
  return longest;
}

TEST(RunText, SaysFirstWhatLimitsAndWhatToChange) {
  const std::string text = text_of(sample_report(), {"run was interrupted"});
  EXPECT_THAT(text, testing::StartsWith(
                        "run runs/20260101T000000000Z-abcdef on sim\n"
                        "note: run was interrupted\n\n"
                        "Input-bound: batches come late: 'read' "
                        "waits for its source.\n"
                        "  -> Set loader.cache from \"none\" to \"ram\": "
                        "predicted 2 x faster (costs 1 MiB of\n"
                        "     memory).\n"));
}

TEST(RunText, NamesTheRankThatTheOthersWaitFor) {
  Json report = sample_report();
  report["ranks"] = Json::parse(
      R"({"world": 2, "backend": "gloo", "launcher": "srun",
          "hosts": ["gpu01", "gpu02"],
          "slowest": {"rank": 1, "host": "gpu02", "cause": "input",
                      "share": 0.25}})",
      "test");
  EXPECT_THAT(text_of(report),
              HasSubstr("\n2 ranks on gpu01, gpu02 (srun, gradients added by "
                        "gloo). The others wait for\nrank 1 on gpu02 25.0 % of "
                        "the time: its batches come late.\n"));
}

TEST(RunText, TellsHowTheRowsWerePreparedAndWhy) {
  Json report = sample_report();
  const std::string scanned =
      "\nthe rows are scanned before the first batch: the split is by a "
      "column\n";
  EXPECT_THAT(text_of(report), HasSubstr(scanned));
  report["dataset"] = Json::parse(
      R"({"sources": [{"preparation": {"form": "by_position",
                                       "reason": "nothing requires a scan"}},
                      {"rows": 3},
                      {"preparation": {"form": "scanned", "reason": "keys"}}]})",
      "test");
  EXPECT_THAT(text_of(report),
              AllOf(HasSubstr("\nsources[0]: the rows are read by position "
                              "when a batch needs them: nothing\nrequires a "
                              "scan\nsources[2]: the rows are scanned"),
                    Not(HasSubstr("sources[1]"))));
  report["dataset"] = Json();
  EXPECT_THAT(text_of(report), Not(HasSubstr("the rows are")));
}

TEST(RunText, FitsIn80Columns) {
  Json report = sample_report();
  EXPECT_LE(longest_line(text_of(report)), 80u);
  report["verdict"]["cause"] = std::string(30, 'x') + " " +
                               std::string(60, 'y') + " " +
                               std::string(20, 'z');
  Json step = report.find("worst_steps")->array()[0];
  step["samples"] = Json::Array{std::string(200, 'k')};
  report["worst_steps"] = Json::Array{step};
  EXPECT_LE(longest_line(text_of(
                report, {std::string("a note ") + std::string(70, 'n')})),
            80u);
}

TEST(RunText, DrawsThePartsOverTime) {
  const std::string text = text_of(sample_report());
  // Four slices; a quarter of the third is outside of the steps.
  std::string top = "100 % |";
  for (int column = 0; column < 70; ++column)
    top += column >= 35 && column < 52 ? "-" : "▒";
  EXPECT_THAT(text, HasSubstr(top + "\n"));
  EXPECT_THAT(text, HasSubstr("░ waits for data 37.5 %"));
  EXPECT_THAT(text, HasSubstr("- validation and checkpoints"));
}

TEST(RunText, NamesTheTwoPartsThatMadeAStepLong) {
  EXPECT_THAT(text_of(sample_report()),
              HasSubstr("1      8     120  data 94 %, compute 6 %"));
}

TEST(RunText, MarksTheRateThatIsNeeded) {
  const std::string text = text_of(sample_report());
  EXPECT_THAT(text, HasSubstr("(| what the accelerator would take: 3,200)"));
  EXPECT_THAT(text, HasSubstr("read                1,650 ████    |"));
  EXPECT_THAT(text, HasSubstr("= loader threads    500 k ████████|███████>"));
}

TEST(RunText, StagesOfTheLoopsOwnThreadHaveNoThreadsAndOneTime) {
  Json report = sample_report();
  Json::Array stages = report.find("stages")->array();
  for (Json& stage : stages) {
    stage["workers"] = 0;
    if (stage.find("pool") != nullptr) stage["busy"] = 0.6;
  }
  report["stages"] = stages;
  const std::string text = text_of(report);
  EXPECT_THAT(text, HasSubstr("loop  60.0 %"));
  EXPECT_THAT(text, HasSubstr("loop 100.0 %")) << "and not 120 %";
}

TEST(RunText, ListsWhatTheTunerChanged) {
  Json report = sample_report();
  EXPECT_THAT(text_of(report), Not(HasSubstr("tuner")));
  report["tuner"] = Json::parse(R"({"rests": "all is calm", "decisions": [
      {"at_s": 2.0, "knob": "loader.readers", "from": 4, "to": 8,
       "predicted_gain": 0.8, "measured_gain": 0.75, "undone": true}]})",
                                "a test");
  const std::string text = text_of(report);
  EXPECT_THAT(text, HasSubstr("changes by the tuner\n"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "loader.readers +4 +8 +\\+80 % +\\+75 % +undone"));
  EXPECT_THAT(text, HasSubstr("in the end: all is calm\n"));
}

TEST(RunText, IsMadeOfWhatThereIs) {
  for (const Json& instead :
       {Json(), Json("text\x1b[2J"), Json(-1), Json(1e300), Json(true),
        Json(Json::Array{}), Json(Json::Object{})})
    with_each_value_changed(sample_report(), instead, [](const Json& changed) {
      const std::string text = text_of(changed);
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
      EXPECT_THAT(text, testing::StartsWith("run "));
    });
}

TEST(ComparisonText, TellsWhatWasPredictedAndWhatWasGained) {
  Json second = sample_report();
  second["samples_per_s"] = 3040.0;
  second["settings"]["loader"]["cache"] = "ram";
  const std::string text =
      comparison_text(compare_runs(sample_report(), second));
  EXPECT_THAT(text, HasSubstr("The second run takes 3,040 samples/s, the first "
                              "1,600: 90.0 % faster.\n"));
  EXPECT_THAT(text, HasSubstr("predicted 2 x the rate, measured 90.0 %"));
  EXPECT_THAT(text, HasSubstr("loader.cache"));
  EXPECT_LE(longest_line(text), 80u);
}

TEST(ComparisonText, FitsIn80Columns) {
  Json second = sample_report();
  second["settings"][std::string(50, 'k')] = std::string(90, 'v');
  second["settings"]["source"]["path"] = std::string(90, 'p');
  EXPECT_LE(
      longest_line(comparison_text(compare_runs(sample_report(), second))),
      80u);
}

TEST(ComparisonText, DoesNotCreditAdviceThatWasNotFollowed) {
  const std::string text =
      comparison_text(compare_runs(sample_report(), sample_report()));
  EXPECT_THAT(text, HasSubstr("the second run did not"));
  EXPECT_THAT(text, Not(HasSubstr("measured")));
}

TEST(ComparisonText, ComparesWhatThereIs) {
  for (const Json& instead : {Json(), Json("text"), Json(1e300), Json(-1)})
    with_each_value_changed(sample_report(), instead, [](const Json& changed) {
      EXPECT_FALSE(
          comparison_text(compare_runs(sample_report(), changed)).empty());
    });
}

}  // namespace
}  // namespace penstock
