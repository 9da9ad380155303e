#include "penstock/session/rank_lifelines.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <barrier>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "penstock/base/log.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Lifelines of ranks that are threads of this process.
class Lifelines : public testing::Test {
 protected:
  static constexpr int kWorld = 3;

  /// `master_of`: by rank.
  void open(const std::function<std::string(int)>& master_of) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kWorld; ++rank)
      ranks.emplace_back([this, rank, &master_of] {
        lines_[rank].emplace(
            Rank{.rank = rank, .world = kWorld}, master_of(rank),
            [&](const std::string& mine) { return gathered(rank, mine); });
      });
    for (std::thread& one : ranks) one.join();
  }
  void open() {
    open([](int) { return "127.0.0.1"; });
  }
  std::vector<std::string> gathered(int rank, const std::string& mine) {
    texts_[static_cast<std::size_t>(rank)] = mine;
    all_.arrive_and_wait();
    std::vector<std::string> all = texts_;
    if (rank == 0 && with_stranger_ && !all[0].empty()) connect(all[0]);
    all_.arrive_and_wait();
    return all;
  }
  /// Without the word of the run.
  void connect(const std::string& told) {
    stranger_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(told)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(stranger_, reinterpret_cast<sockaddr*>(&address),
                        sizeof(address)),
              0);
    const std::string text(20, 'x');
    ASSERT_EQ(::send(stranger_, text.data(), text.size(), 0), 20);
  }
  void TearDown() override {
    if (stranger_ >= 0) ::close(stranger_);
  }

  std::optional<RankLifelines> lines_[kWorld];
  std::vector<std::string> texts_ = std::vector<std::string>(kWorld);
  std::barrier<> all_{kWorld};
  bool with_stranger_ = false;
  int stranger_ = -1;
};

TEST_F(Lifelines, TellWhoHasGoneAndNotWhoHasLeft) {
  open();
  for (const auto& one : lines_) EXPECT_THAT(one->gone(), IsEmpty());
  lines_[1].reset();
  EXPECT_THAT(lines_[0]->gone(), ElementsAre(1));
  EXPECT_THAT(lines_[2]->gone(), IsEmpty());
  lines_[2]->leave();
  lines_[2].reset();
  EXPECT_THAT(lines_[0]->gone(), ElementsAre(1)) << "again and again";
}

TEST_F(Lifelines, TellTheOthersThatRank0HasGone) {
  open();
  lines_[0].reset();
  EXPECT_THAT(lines_[1]->gone(), ElementsAre(0));
  EXPECT_THAT(lines_[2]->gone(), ElementsAre(0));
}

TEST_F(Lifelines, AreNotHeldByAStranger) {
  with_stranger_ = true;
  open();
  ::close(std::exchange(stranger_, -1));
  EXPECT_THAT(lines_[0]->gone(), IsEmpty());
  lines_[2].reset();
  EXPECT_THAT(lines_[0]->gone(), ElementsAre(2));
}

TEST_F(Lifelines, AreThereForAllOrForNone) {
  std::mutex mutex;
  std::vector<std::string> told;
  set_log_writer([&](LogLevel, std::string_view message) {
    const std::lock_guard lock(mutex);
    told.emplace_back(message);
  });
  open([](int rank) { return rank == 1 ? "nowhere.invalid" : "127.0.0.1"; });
  set_log_writer({});
  EXPECT_THAT(told, ElementsAre(HasSubstr("rank 1 to nowhere.invalid:")));
  lines_[2].reset();
  EXPECT_THAT(lines_[0]->gone(), IsEmpty());
}

}  // namespace
}  // namespace penstock
