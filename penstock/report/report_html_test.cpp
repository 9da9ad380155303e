#include "penstock/report/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/report/fake/sample_report.h"
#include "penstock/report/html_charts.h"
#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos;
       at += part.size())
    ++times;
  return times;
}

TEST(ReportHtml, SaysFirstWhatLimitsAndWhatToChange) {
  const std::string page = report_html(sample_report());
  const std::size_t verdict = page.find(
      "<h1>Input-bound: batches come late: &#39;read&#39; waits for "
      "its source.</h1>");
  const std::size_t action = page.find(
      "Set loader.cache from &quot;none&quot; to &quot;ram&quot;: predicted "
      "2 x faster (costs 1 MiB of memory).");
  const std::size_t second = page.find(
      "Set loader.readers from 4 to 8: predicted 25 % faster (costs 4 "
      "connections).");
  ASSERT_NE(verdict, std::string::npos);
  ASSERT_NE(action, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(verdict, action);
  EXPECT_LT(action, second);
  EXPECT_LT(second, page.find("<h2>"));
}

TEST(ReportHtml, ShowsTheMemoryOfTheDeviceOverTheRunAndWhatWasGivenUp) {
  Json report = sample_report();
  EXPECT_THAT(report_html(report), Not(HasSubstr("all of the device")));
  report["memory"]["over_time"] = Json::parse(
      R"({"seconds": [1, 2, 3], "parameters": [1024, 1024, 1024],
          "gradients": [1024, 1024, 1024], "optimizer": [0, 2048, 2048],
          "activations": [4096, 8192, 4096], "cache": [0, 0, 0],
          "look_ahead": [0, 0, "odd"]})",
      "test");
  report["oom"] = Json::parse(
      R"([{"step": 7, "from": 64, "to": 32, "action": "micro_batch",
           "exact": false}, {"action": "<b>"}, 5])",
      "test");
  const std::string page = report_html(report);
  EXPECT_THAT(page, HasSubstr("all of the device"));
  EXPECT_THAT(page, HasSubstr("4.0 KiB to 8.0 KiB"));
  EXPECT_THAT(page, HasSubstr("micro batch"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("cached rows</b>")));
  EXPECT_THAT(memory_over_time(report, ""),
              ElementsAre(std::pair(1.0, 6144.0), std::pair(2.0, 12288.0)));
}

/// A run of 20 s, of which its steps took 8.
Json report_of_checkpoints() {
  Json report = sample_report();
  report["wall_s"] = 20.0;
  report["outside"] = Json::parse(
      R"({"checkpoint_s": 9.0, "validation_s": 1.0, "epoch_start_s": 0.0,
          "other_s": 2.0})",
      "test");
  return report;
}

TEST(ReportHtml, NamesTheRankThatTheOthersWaitFor) {
  Json report = sample_report();
  EXPECT_THAT(report_html(report), Not(HasSubstr("ranks on")));
  report["ranks"] = Json::parse(
      R"({"world": 2, "backend": "gloo", "launcher": "srun",
          "hosts": ["gpu01", "gpu<2>"],
          "slowest": {"rank": 1, "host": "gpu<2>", "cause": "compute",
                      "share": 0.25}})",
      "test");
  EXPECT_THAT(report_html(report),
              HasSubstr("The others wait for rank 1 on gpu&lt;2&gt; 25.0 % of "
                        "the time: its steps take longer."));
}

TEST(ReportHtml, ItsTitleNamesTheGreatestPartOfTheWallTime) {
  const Json report = report_of_checkpoints();
  EXPECT_THAT(report_html(report),
              HasSubstr("<title>runs/20260101T000000000Z-abcdef: checkpoints "
                        "45 %</title>"));
  EXPECT_THAT(report_html(report), HasSubstr("The whole run, 20 s"));
  EXPECT_EQ(wall_line(report),
            "wall time 20 s: steps 40.0 %, checkpoints 45.0 %, validation "
            "5.0 %, opening and closing 10.0 %");
  // Half of the steps' 20 s is computing, more than the checkpoints.
  Json steps = report;
  steps["wall_s"] = 32.0;
  EXPECT_EQ(greatest_part(steps), "compute 31 %");
}

TEST(ReportHtml, OfAnOlderReportTheTitleIsTheRun) {
  EXPECT_EQ(wall_line(sample_report()), "");
  EXPECT_THAT(report_html(sample_report()),
              HasSubstr("<title>runs/20260101T000000000Z-abcdef</title>"));
}

TEST(ReportHtml, ShowsTheNumbersOfTheReport) {
  const std::string page = report_html(sample_report());
  for (const char* shown : {"<data value=\"0.5\">50.0 %</data>",
                            "<data value=\"1600.0\">1,600</data>",
                            "<data value=\"1650.0\">1,650</data>",
                            "<data value=\"40.25\">40.2 ms</data>",
                            "<data value=\"120.5\">120</data>"})
    EXPECT_THAT(page, HasSubstr(shown));
  EXPECT_THAT(page, HasSubstr("if it never waited: 3,200/s"));
  EXPECT_THAT(page, HasSubstr("12, seven, null"));
}

/// With one change that stayed and one that was undone.
Json tuned_report() {
  Json report = sample_report();
  report["tuner"] = Json::parse(R"({"on": true, "rests": "it is <fast>",
    "decisions": [
      {"at_s": 2.0, "knob": "loader.readers", "from": 4, "to": 8,
       "also": {"knob": "loader.prefetch", "from": 1, "to": 2},
       "predicted_gain": 0.8, "measured_gain": 0.75, "undone": false},
      {"at_s": 6.0, "knob": "loader.prefetch", "from": 2, "to": 4,
       "predicted_gain": 0.2, "measured_gain": -0.01, "undone": true},
      {"at_s": 8.0, "knob": "loader.prefetch", "from": 4, "to": 2,
       "predicted_gain": 0.0, "measured_gain": null, "undone": false}]})",
                                "a test");
  return report;
}

TEST(ReportHtml, ListsWhatTheTunerChangedAndWhatThatGained) {
  EXPECT_THAT(
      tuner_rows(tuned_report()),
      ElementsAre(
          ElementsAre("after", "setting", "from", "to", "predicted", "measured",
                      ""),
          ElementsAre("2 s", "loader.readers", "4", "8", "+80 %", "+75 %", ""),
          ElementsAre("", "loader.prefetch", "1", "2", "", "", "with that"),
          ElementsAre("6 s", "loader.prefetch", "2", "4", "+20 %", "-1 %",
                      "undone"),
          ElementsAre("8 s", "loader.prefetch", "4", "2", "-", "-", "")));
  const std::string page = report_html(tuned_report());
  EXPECT_THAT(page, HasSubstr("<td>loader.readers</td><td>4</td><td>8</td>"
                              "<td>+80 %</td><td>+75 %</td>"));
  EXPECT_THAT(page, HasSubstr("In the end: it is &lt;fast&gt;."));
  EXPECT_THAT(report_html(sample_report()),
              Not(HasSubstr("Changes by the tuner")));
}

TEST(ReportHtml, DrawsTheStageThatLimitsAndTheRateThatIsNeeded) {
  const std::string page = report_html(sample_report());
  EXPECT_THAT(page, HasSubstr("<div class=\"stage limits\">"));
  EXPECT_EQ(times_in(page, "class=\"stage limits\""), 1u);
  EXPECT_THAT(page, HasSubstr("<i class=\"rate\" style=\"width:25.78%\">"));
  EXPECT_EQ(times_in(page, "<i class=\"needed\" style=\"left:50.00%\">"), 4u)
      << "three stages, and the pool of two of them";
  EXPECT_THAT(page, HasSubstr("plan, collate together"));
}

TEST(ReportHtml, NeedsNothingFromElsewhere) {
  const std::string page = report_html(sample_report());
  for (const char* reference :
       {"http:", "https:", "src=", "href=", "<script", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
}

TEST(ReportHtml, TablesFitAPhone) {
  const std::string page = report_html(sample_report());
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  const auto narrow = page.find("@media (max-width: 40rem)");
  ASSERT_NE(narrow, page.npos);
  EXPECT_THAT(page.substr(narrow, 400), HasSubstr("white-space: normal"));
}

TEST(ReportHtml, TakesTextOfTheUserForText) {
  const char* kEvil = "\"'><script>x</script><img src=1>&\x01";
  Json report = sample_report();
  const std::size_t elements = times_in(report_html(report), "<");
  with_each_value_changed(report, kEvil, [&](const Json& changed) {
    const std::string page = report_html(changed);
    EXPECT_THAT(page, Not(HasSubstr("<script")));
    EXPECT_THAT(page, Not(HasSubstr("<img")));
    EXPECT_THAT(page, Not(HasSubstr("\x01")));
    EXPECT_LE(times_in(page, "<"), elements + 2);
  });
  report["settings"][kEvil] = kEvil;
  EXPECT_THAT(report_html(report), Not(HasSubstr("<script")));
  EXPECT_THAT(report_html(report), HasSubstr("&lt;script&gt;"));
}

TEST(ReportHtml, IsMadeOfWhatThereIs) {
  for (const Json& instead :
       {Json(), Json("text"), Json(-1), Json(1e300), Json(0), Json(true),
        Json(Json::Array{}), Json(Json::Object{}),
        Json::parse("[{\"a\": [1]}]", "test")})
    with_each_value_changed(sample_report(), instead, [&](const Json& changed) {
      EXPECT_THAT(report_html(changed), HasSubstr("</html>"));
    });
  EXPECT_THAT(report_html(Json(Json::Object{})),
              HasSubstr("Bottleneck unknown."));
}

TEST(ReportHtml, WhatIsNotKnownIsNotZero) {
  Json report = sample_report();
  report["au"] = nullptr;
  report["samples_per_s"] = nullptr;
  const std::string page = report_html(report);
  EXPECT_THAT(page, HasSubstr("<b>n/a</b><span>accelerator utilisation"));
  EXPECT_THAT(page, Not(HasSubstr("class=\"needed\"")));
  EXPECT_THAT(page, Not(HasSubstr("<h3>")));
}

TEST(ReportFacts, SlicesOfTimeHaveSharesThatSumToOne) {
  const std::vector<TimeSlice> slices = time_slices(sample_report(), 512);
  ASSERT_EQ(slices.size(), 4u);
  for (const TimeSlice& slice : slices) {
    double sum = slice.outside;
    for (double share : slice.shares) sum += share;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  EXPECT_THAT(slices[2].shares, ElementsAre(0.5, 0.125, 0.0625, 0.0625, 0));
  EXPECT_EQ(slices[2].outside, 0.25);
  EXPECT_EQ(slices[2].from_s, 4);
  EXPECT_EQ(slices[2].to_s, 6);
}

TEST(ReportFacts, FewerSlicesHoldTheSameTime) {
  const std::vector<TimeSlice> slices = time_slices(sample_report(), 2);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].to_s, 4);
  EXPECT_EQ(slices[1].to_s, 8);
  EXPECT_EQ(slices[0].shares[1], 0.375);
  EXPECT_EQ(slices[1].shares[1], 0.25);
}

TEST(ReportFacts, ThreadsOfSeveralStagesHaveTheRateOfAllTogether) {
  const std::vector<ShownStage> stages = shown_stages(sample_report());
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[3].name, "loader");
  EXPECT_THAT(stages[3].of_pool, ElementsAre("plan", "collate"));
  EXPECT_NEAR(*stages[3].rate, 500000, 1e-6);
  EXPECT_NEAR(*stages[3].busy, 0.03, 1e-12);
  EXPECT_TRUE(stages[1].limits);
}

TEST(ReportFacts, WritesNumbersAsPeopleReadThem) {
  EXPECT_EQ(shown_number({}), "n/a");
  EXPECT_EQ(shown_number(0.0), "0");
  EXPECT_EQ(shown_number(0.01234), "0.0123");
  EXPECT_EQ(shown_number(12.34), "12.3");
  EXPECT_EQ(shown_number(999.6), "1000");
  EXPECT_EQ(shown_number(1234567.8), "1,234,568");
  EXPECT_EQ(shown_number(-1234.0), "-1,234");
  EXPECT_EQ(shown_rate(9999.4), "9,999");
  EXPECT_EQ(shown_rate(9999.6), "10.0 k");
  EXPECT_EQ(shown_rate(99960.0), "100 k");
  EXPECT_EQ(shown_rate(999600.0), "1.0 M");
  EXPECT_EQ(shown_seconds(0.0251), "0.0251 s");
  EXPECT_EQ(shown_seconds(150.0), "2:30 min");
  EXPECT_EQ(shown_seconds(12307.0), "3:25:07 h");
  EXPECT_EQ(shown_share(0.7123), "71.2 %");
}

TEST(HtmlCharts, ACurveOfOnePointIsNone) {
  EXPECT_EQ(line_chart({{.style = "one", .points = {{1, 2}}}}), "");
  EXPECT_THAT(line_chart({{.style = "one", .points = {{0, 2}, {1, 4}}}}),
              HasSubstr("points=\"0.0 96.00 1000.0 4.00 \""));
}

}  // namespace
}  // namespace penstock
