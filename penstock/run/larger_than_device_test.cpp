#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/report/report.h"
#include "penstock/session/session.h"

// Rows that the device cannot hold: it keeps a quarter of them, and the others
// are copied with each batch.

namespace penstock {
namespace {

class LargerThanTheDevice : public testing::TestWithParam<int> {
 protected:
  static constexpr double kStepMs = 0.5;
  static constexpr std::int64_t kBatch = 32;

  LargerThanTheDevice() {
    auto whole = open_loader(positions_.job({"loader.cache=ram"}), {});
    there_ = whole->rows().rows() / 4;
    row_bytes_ = layout_of(whole->opened()->facts().fitted->fields).row_bytes;
    std::vector<SampleId> train(
        static_cast<std::size_t>(whole->rows().rows_on(Side::train)));
    std::iota(train.begin(), train.end(), 0);
    whole->rows().select(Side::train, train);
    auto copied =
        std::ranges::count_if(train, [&](SampleId id) { return id >= there_; });
    share_ = static_cast<double>(copied) / static_cast<double>(train.size());
  }

  /// `copy`: the bandwidth, as a multiple of what the steps need.
  std::unique_ptr<Session> open(double copy, const std::string& order) {
    auto gib =
        static_cast<double>(static_cast<std::size_t>(there_) * row_bytes_ + 1) /
        (1 << 30);
    double needed = static_cast<double>(kBatch) *
                    static_cast<double>(row_bytes_) * share_ / (kStepMs * 1e6);
    auto text = [](double number) { return Json(number).dump(); };
    return open_loader(
        positions_.job({"loader.batch_size=" + std::to_string(kBatch),
                        "loader.order=" + order,
                        "loader.workers=" + std::to_string(GetParam()),
                        "loader.cache={\"device_gib\": " + text(gib) +
                            ", \"pinned_gib\": 0, \"disk_gib\": 0}",
                        "device={\"kind\": \"sim\", \"step_ms\": " +
                            text(kStepMs) + ", \"copy_gb_s\": " +
                            text(copy * needed) + ", \"clock\": \"virtual\"}"}),
        {.batches = -1, .timed = true});
  }
  static Json report_after(Session& loader, int steps) {
    for (int step = 0; step < steps; ++step) EXPECT_TRUE(loader.next());
    return report_of(loader);
  }

  PositionsRun positions_;
  std::int64_t there_ = 0;  // rows that the device keeps
  double share_ = 0;        // of the train rows: the others
  std::size_t row_bytes_ = 0;
};

constexpr const char* kPaged = R"({"paged": {"page": 8, "window": 4}})";

TEST_P(LargerThanTheDevice, StaysBusyWhereTheBusCarriesTheRest) {
  for (const char* order : {"exact", kPaged}) {
    auto loader = open(1.3, order);
    EXPECT_TRUE(loader->rows().plan().mixed());
    Json report = report_after(*loader, 300);
    EXPECT_GE(report.find("au")->number(), 0.98) << order;
  }
}

TEST_P(LargerThanTheDevice, SaysThatCopyingLimits) {
  Json report = report_after(*open(0.7, kPaged), 300);
  EXPECT_NEAR(report.find("au")->number(), 0.70, 0.03);
  EXPECT_EQ(report.find("verdict")->find("limit")->string(), "copy")
      << report.find("verdict")->dump();
}

INSTANTIATE_TEST_SUITE_P(Workers, LargerThanTheDevice,
                         testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
