#include "penstock/session/rank_group.h"

#include <gtest/gtest.h>

#include <thread>

namespace penstock {
namespace {

using std::chrono::milliseconds;

Vote vote_of(std::vector<Ballot> ballots) {
  return counted(std::move(ballots));
}

TEST(Votes, WhatOneRankSaysHoldsForAll) {
  const Vote vote = vote_of({{.counted = 2, .loss = 1},
                             {.no_memory = true},
                             {.save = true, .counted = 1, .loss = 3}});
  EXPECT_TRUE(vote.no_memory);
  EXPECT_TRUE(vote.save);
  EXPECT_FALSE(vote.stop);
  EXPECT_EQ(vote.counted, 3);
  EXPECT_EQ(vote.loss, 4);
}

TEST(SlowRanks, NamesTheRankThatWaitsForItsBatches) {
  SlowRanks slow;
  for (int step = 0; step < 10; ++step)
    slow.add(
        vote_of({{.worked = milliseconds(20), .input = milliseconds(1)},
                 {.worked = milliseconds(20), .input = milliseconds(1)},
                 {.worked = milliseconds(60), .input = milliseconds(45)}}));
  const SlowRanks::Slowest slowest = slow.slowest();
  EXPECT_EQ(slowest.rank, 2);
  EXPECT_EQ(slowest.cause, "input");
  EXPECT_NEAR(slowest.share, 40.0 / 60, 1e-9);
}

TEST(SlowRanks, NamesTheRankThatComputesLonger) {
  SlowRanks slow;
  slow.add(
      vote_of({{.worked = milliseconds(90)}, {.worked = milliseconds(30)}}));
  EXPECT_EQ(slow.slowest().rank, 0);
  EXPECT_EQ(slow.slowest().cause, "compute");
}

TEST(SlowRanks, NamesTheRankWhoseProcessorOtherProgramsHave) {
  SlowRanks slow;
  slow.add(vote_of({{.worked = milliseconds(30), .queued = milliseconds(1)},
                    {.worked = milliseconds(90), .queued = milliseconds(55)}}));
  EXPECT_EQ(slow.slowest().rank, 1);
  EXPECT_EQ(slow.slowest().cause, "processor");
}

TEST(SlowRanks, TheNetworkIsWhatEvenTheLastRankWaitsFor) {
  SlowRanks slow;
  slow.add(vote_of({{.worked = milliseconds(20),
                     .voted = milliseconds(30),
                     .waited = milliseconds(80)},
                    {.worked = milliseconds(22),
                     .voted = milliseconds(28),
                     .waited = milliseconds(78)}}));
  EXPECT_EQ(slow.slowest().cause, "network");
  EXPECT_EQ(slow.slowest().rank, -1);
  EXPECT_NEAR(slow.vote_milliseconds(), 28, 1e-9);
}

/// A group of which the second rank always takes a second.
class WithASlowOne final : public RankGroup {
 public:
  WithASlowOne()
      : RankGroup({.place = {.rank = {.rank = 0, .world = 2}},
                   .backend = "gloo",
                   .hosts = {"gpu01", "gpu02"}}) {}
  std::vector<std::string> gather(const std::string& mine) override {
    return {mine, mine};
  }
  void copy_from_first(std::span<const TensorView>) override {}
  void report(const std::string&) noexcept override {}
  void leave() noexcept override {}

 private:
  std::vector<Ballot> exchange(const Ballot& mine) override {
    return {mine,
            {.worked = std::chrono::seconds(1),
             .input = std::chrono::milliseconds(900)}};
  }
  void add_up(std::span<const TensorView>) override {
    std::this_thread::sleep_for(milliseconds(40));
  }
};

TEST(RankGroup, WaitingForTheOthersInASumIsNoWorkOfThisRank) {
  WithASlowOne ranks;
  ranks.vote({});
  ranks.sum({});
  const Ballot mine = ranks.vote({}).ballots[0];
  EXPECT_GE(mine.waited, milliseconds(40));
  EXPECT_LT(mine.worked, milliseconds(40));
  EXPECT_LT(mine.voted, milliseconds(40));
}

TEST(RankGroup, NamesTheRankAndTheHostThatTheOthersWaitFor) {
  WithASlowOne ranks;
  EXPECT_EQ(ranks.waits_for(), "");
  ranks.vote({});
  EXPECT_EQ(ranks.waits_for(), "rank 1 on gpu02 (input)");
  const Json report = ranks.report_json();
  const Json& slowest = *report.find("slowest");
  EXPECT_EQ(slowest.find("host")->string(), "gpu02");
  EXPECT_EQ(slowest.find("cause")->string(), "input");
  EXPECT_GT(slowest.find("share")->number(), 0.5);
}

TEST(RankGroup, RankZeroWritesForAll) {
  const WithASlowOne ranks;
  EXPECT_TRUE(writes_for_all(nullptr));
  EXPECT_TRUE(writes_for_all(&ranks));
}

TEST(SlowRanks, EqualRanksAreNotSlow) {
  SlowRanks slow;
  EXPECT_EQ(slow.slowest().cause, "");
  slow.add(
      vote_of({{.worked = milliseconds(100)}, {.worked = milliseconds(101)}}));
  EXPECT_EQ(slow.slowest().cause, "");
}

}  // namespace
}  // namespace penstock
