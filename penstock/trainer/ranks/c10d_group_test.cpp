#include "penstock/trainer/ranks/c10d_group.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/session/session.h"
#include "penstock/trainer/ranks/network_interface.h"
#include "penstock/trainer/ranks/rank_share.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A socket on a port that no other process has.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, any, length), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, any, &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  std::uint16_t number() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

std::uint16_t free_port() { return TakenPort().number(); }

RankPlace place_of(int rank, int world, std::uint16_t port) {
  return {.rank = {.rank = rank, .world = world},
          .local_rank = rank,
          .local_world = world,
          .launcher = "environment",
          .master = "127.0.0.1",
          .port = port};
}

/// Runs `work` for each rank, in a thread of its own.
void on_ranks(int world, const std::function<void(RankGroup& group)>& work) {
  const std::uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      const auto group = open_ranks(place_of(rank, world, port));
      work(*group);
      group->leave();
    });
  for (std::thread& one : threads) one.join();
}

TensorView view_of(std::vector<float>& numbers) {
  return {.data = reinterpret_cast<std::byte*>(numbers.data()),
          .dtype = Dtype::float32,
          .shape = {std::ssize(numbers)}};
}

TEST(Ranks, TextsOfEveryLengthComeInTheOrderOfRanks) {
  on_ranks(3, [](RankGroup& group) {
    EXPECT_EQ(group.facts().hosts.size(), 3u);
    const std::string mine(static_cast<std::size_t>(group.rank().rank) * 5,
                           'x');
    EXPECT_THAT(group.gather(mine), ElementsAre("", "xxxxx", "xxxxxxxxxx"));
  });
}

TEST(Ranks, SumsAreTheSameOnAllRanksInBucketsOfAnySize) {
  on_ranks(2, [](RankGroup& group) {
    const auto add = static_cast<float>(group.rank().rank);
    std::vector<float> small{1.5F + add}, large(8 << 20, 1 + add), last{add};
    const std::vector<TensorView> all{view_of(small), view_of(large),
                                      view_of(last)};
    group.sum(all);
    EXPECT_EQ(small[0], 4);
    EXPECT_EQ(large.front(), 3);
    EXPECT_EQ(large.back(), 3);
    EXPECT_EQ(last[0], 1);
    large.assign(large.size(), add);
    group.copy_from_first(all);
    EXPECT_EQ(large.back(), 0);
  });
}

TEST(Ranks, WishesOfOneRankAreInTheVoteOfAllOnce) {
  on_ranks(2, [](RankGroup& group) {
    if (group.rank().rank == 1) group.wish_stop();
    EXPECT_TRUE(group.vote({}).stop);
    EXPECT_FALSE(group.vote({.counted = 1.5}).stop);
    EXPECT_EQ(group.last_vote().counted, 3);
    EXPECT_TRUE(group.vote({.no_memory = group.first()}).no_memory);
    EXPECT_EQ(group.last_vote().ballots.size(), 2u);
    EXPECT_EQ(group.report_json().find("world")->integer(), 2);
  });
}

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, {});
}

TEST(Ranks, ErrorOfOneRankIsShownByTheOthers) {
  const std::uint16_t port = free_port();
  std::thread fails([&] {
    const auto group = open_ranks(place_of(1, 2, port));
    group->report(failure_text(group->rank(), "source", "file t.csv is gone"));
  });
  const auto group = open_ranks(place_of(0, 2, port));
  const Error error = error_of([&] { group->vote({}); });
  fails.join();
  EXPECT_EQ(error.parts().code, "ranks.failed");
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().where, "rank 1");
  EXPECT_THAT(error.parts().why, HasSubstr("t.csv is gone"));
  group->leave();
}

TEST(Ranks, ErrorOfTheRankWithTheStoreIsShownByTheOthers) {
  const std::uint16_t port = free_port();
  std::thread fails([&] {
    const auto group = open_ranks(place_of(0, 2, port));
    group->report(failure_text(group->rank(), "source", "file t.csv is gone"));
    group->leave();
  });
  const auto group = open_ranks(place_of(1, 2, port));
  const Error error = error_of([&] { group->vote({}); });
  EXPECT_EQ(error.parts().code, "ranks.failed");
  EXPECT_EQ(error.parts().where, "rank 0");
  EXPECT_THAT(error.parts().why, HasSubstr("t.csv is gone"));
  group->leave();
  fails.join();
}

TEST(Ranks, RankThatVanishesIsNamed) {
  const std::uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (const int rank : {1, 2})
    threads.emplace_back([&, rank] {
      const auto group = open_ranks(place_of(rank, 3, port));
      if (rank == 2) return;
      EXPECT_EQ(error_of([&] { group->vote({}); }).parts().code, "ranks.lost");
    });
  const auto group = open_ranks(place_of(0, 3, port));
  const Error error = error_of([&] { group->vote({}); });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(error.parts().code, "ranks.lost");
  EXPECT_THAT(error.parts().where, HasSubstr("rank 2 on "));
  group->leave();
}

TEST(Ranks, TakenPortIsNamed) {
  const TakenPort taken;
  const Error error =
      error_of([&] { open_ranks(place_of(0, 2, taken.number())); });
  EXPECT_EQ(error.parts().code, "ranks.port");
  EXPECT_EQ(error.parts().where, "127.0.0.1:" + std::to_string(taken.number()));
}

TEST(Ranks, MasterThatDoesNotAnswerIsNamedAfterTenSeconds) {
  const std::uint16_t port = free_port();
  const auto began = std::chrono::steady_clock::now();
  const Error error = error_of([&] { open_ranks(place_of(1, 2, port)); });
  EXPECT_EQ(error.parts().code, "ranks.master");
  EXPECT_THAT(error.parts().where,
              HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(error.parts().why, HasSubstr("Connection refused"));
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GT(took, std::chrono::seconds(9));
  EXPECT_LT(took, std::chrono::seconds(15));
}

TEST(Ranks, RowsOfAllRanksComeInTheOrderOfTheirSamples) {
  struct Row {
    std::int64_t sample;
    double value;
  };
  on_ranks(3, [](RankGroup& group) {
    const int rank = group.rank().rank;
    std::vector<Row> mine;  // rank 1 has none
    if (rank == 0) mine = {{0, 0.5}, {3, 3.5}};
    if (rank == 2) mine = {{1, 1.5}, {2, 2.5}, {4, 4.5}};
    RankShare share(group);
    const std::vector<Row> all = of_all_ranks(&share, mine);
    ASSERT_EQ(all.size(), 5u);
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(all[i].value, static_cast<double>(all[i].sample) + 0.5);
    EXPECT_EQ(all.back().sample, 4);
    std::vector<double> flat;
    for (const Row& row : mine)
      flat.insert(flat.end(), {static_cast<double>(row.sample), row.value});
    EXPECT_THAT(share.gathered(flat, 2),
                ElementsAre(0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5));
    std::vector<double> sums{1, static_cast<double>(rank)};
    share.sum(sums);
    EXPECT_THAT(sums, ElementsAre(3, 3));
  });
}

TEST(Ranks, DetailsOfAllRanksAreMerged) {
  on_ranks(2, [](RankGroup& group) {
    const bool first = group.first();
    Json details = Json::parse(
        first ? R"({"worst": [{"sample": 1, "picture": "p"}, {"sample": 2}],
                    "texts": [{"sample": 0}, {"sample": 3}]})"
              : R"({"worst": [{"sample": 1}, {"sample": 2, "picture": "q"}],
                    "texts": [{"sample": 1}]})",
        "test");
    RankShare(group).merge(details, 2);
    EXPECT_EQ(details, Json::parse(
                           R"({"worst": [{"sample": 1, "picture": "p"},
                          {"sample": 2, "picture": "q"}],
                "texts": [{"sample": 0}, {"sample": 1}]})",
                           "test"));
    Json nothing;
    RankShare(group).merge(nothing, 2);
    EXPECT_TRUE(nothing.is_null());
  });
}

TEST(NetworkInterface, HostThatIsUnknownOrDoesNotListenIsUnreachable) {
  const TakenPort taken;
  const std::chrono::milliseconds soon(150);
  EXPECT_EQ(why_unreachable("127.0.0.1", taken.number(), soon), "");
  EXPECT_EQ(why_unreachable("127.0.0.1", free_port(), soon),
            "Connection refused");
  EXPECT_NE(why_unreachable("no-such-host.invalid", 1, soon), "");
}

TEST(NetworkInterface, RouteToThisMachineIsLoopback) {
  EXPECT_EQ(interface_to("127.0.0.1", 1), "lo");
  EXPECT_EQ(interface_to("no-such-host.invalid", 1), "");
}

}  // namespace
}  // namespace penstock
