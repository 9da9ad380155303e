#include "penstock/advisor/makers.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(UseOfMakers, IsThatOfWhatWasLookedAt) {
  FetchWindow window{.workers = 1};
  EXPECT_FALSE(use_of_makers(window));
  window.looked = FetchWindow::Looked{};
  EXPECT_FALSE(use_of_makers(window)) << "of nothing";
  window.looked = FetchWindow::Looked{.seconds = 4, .ran_s = 1, .queued_s = 2};
  EXPECT_DOUBLE_EQ(use_of_makers(window)->ran, 0.25);
  EXPECT_DOUBLE_EQ(use_of_makers(window)->runnable(), 0.75);
}

TEST(UseOfMakers, CountsWhatOtherThreadsOfAWorkerCompute) {
  FetchWindow window{.workers = 1};
  window.worker_s = 10;
  window.worker_cpu_s = 15;
  window.looked = FetchWindow::Looked{.seconds = 4, .ran_s = 0.1};
  EXPECT_DOUBLE_EQ(use_of_makers(window)->ran, 1.5);
}

TEST(UseOfMakers, CountsThemWhereItemsWereTimed) {
  FetchWindow window{.workers = 2};
  window.making = FetchWindow::Making{.item_s = 10, .item_cpu_s = 1};
  EXPECT_DOUBLE_EQ(use_of_makers(window)->ran, 0.1);
  window.worker_s = 10;
  window.worker_cpu_s = 9;
  EXPECT_DOUBLE_EQ(use_of_makers(window)->ran, 0.9);
}

TEST(ShareOfProcessors, IsSeenInWhatComputesMost) {
  FetchWindow window{.workers = 1};
  window.cpus = 2;
  window.cpu_share = 0.5;  // of a loop that computes for 0.1 s
  window.cpu_s = 0.1;
  EXPECT_EQ(share_of_processors(window), 0.5);
  window.worker_s = window.worker_cpu_s = 10;
  window.looked = FetchWindow::Looked{.seconds = 5, .ran_s = 5};
  EXPECT_NEAR(share_of_processors(window), 0.99, 1e-3);
  window.looked->queued_s = 5;
  EXPECT_NEAR(share_of_processors(window), 0.5, 1e-3);
  window.workers = 3;
  window.cpu_share = 0.8;
  EXPECT_EQ(share_of_processors(window), 0.8)
      << "three on two processors wait for each other";
}

TEST(SecondsOfWorkers, AProcessorForEachIsSharedByNobody) {
  EXPECT_DOUBLE_EQ(seconds_of_workers(1, 8, 2, 2), 10);
  EXPECT_DOUBLE_EQ(seconds_of_workers(2, 8, 2, 2), 5);
  EXPECT_DOUBLE_EQ(seconds_of_workers(20, 10, 0, 2), 0.5) << "only waiting";
}

TEST(SecondsOfWorkers, ThoseThatShareProcessorsWaitForThem) {
  // Two on one, each computes as long as it waits: both wait, one computes, or
  // both would, as 1 : 2 : 2, so that the processor is busy for 4/5.
  EXPECT_DOUBLE_EQ(seconds_of_workers(2, 1, 1, 1), 5.0 / 4);
  const double ten = seconds_of_workers(10, 8, 2, 2);
  EXPECT_GT(ten, 1.0) << "two processors have 2 s of computing";
  EXPECT_LT(ten, 1.3);
  EXPECT_NEAR(seconds_of_workers(32, 8, 2, 2), 1.0, 0.01);
}

}  // namespace
}  // namespace penstock
