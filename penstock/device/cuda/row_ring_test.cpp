#include "penstock/device/cuda/row_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/random.h"

namespace penstock::cuda {
namespace {

using testing::ElementsAre;

/// What the device has read; waiting for an event makes it read.
struct Reader final : Event::State {
  explicit Reader(std::vector<int>& waits, int name)
      : log(waits), number(name) {}
  bool passed() override { return done; }
  void wait() override {
    if (!done) log.push_back(number);
    done = true;
  }
  Nanoseconds time() override { return Nanoseconds(0); }
  std::vector<int>& log;
  int number;
  bool done = false;
};

class RowRingTest : public testing::Test {
 protected:
  const std::int64_t* put(std::vector<std::int64_t> rows) {
    const std::int64_t* place = ring_.put(rows);
    EXPECT_EQ(std::vector(place, place + rows.size()), rows);
    ring_.read_until(Event(std::make_shared<Reader>(waits_, next_++)));
    return place;
  }
  std::array<std::int64_t, 10> memory_{};
  std::vector<int> waits_;  // the numbers of the events, from 0
  int next_ = 0;
  RowRing ring_{memory_};
};

TEST_F(RowRingTest, PutsOnePieceBehindTheOther) {
  EXPECT_EQ(put({1, 2, 3}), memory_.data());
  EXPECT_EQ(put({4, -1}), memory_.data() + 3);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RowRingTest, StartsAgainWhereTheEndHasNoRoom) {
  put({1, 2, 3, 4});
  put({5, 6, 7, 8});
  EXPECT_EQ(put({9, 10, 11}), memory_.data());
  EXPECT_THAT(waits_, ElementsAre(0));
}

TEST_F(RowRingTest, WaitsForWhatItWouldOverwriteAndForNoMore) {
  put({1, 2, 3});
  put({4, 5, 6});
  put({7, 8, 9});
  EXPECT_EQ(put({1, 2, 3, 4}), memory_.data());
  EXPECT_THAT(waits_, ElementsAre(0, 1));
  put({5, 6});
  EXPECT_THAT(waits_, ElementsAre(0, 1));
}

TEST_F(RowRingTest, WaitsForASingleIndexThatItWouldOverwrite) {
  for (int i = 0; i < 10; ++i) put({i});
  EXPECT_TRUE(waits_.empty());
  put({10});
  EXPECT_THAT(waits_, ElementsAre(0));
  put({11, 12});
  EXPECT_THAT(waits_, ElementsAre(0, 1, 2));
}

TEST_F(RowRingTest, HoldsAsManyAsItsMemory) {
  put({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  put({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_THAT(waits_, ElementsAre(0));
  std::vector<std::int64_t> many(11);
  EXPECT_THROW(ring_.put(many), Error);
}

TEST_F(RowRingTest, ARowBelowMinusOneIsAnInternalError) {
  for (std::int64_t bad : {std::int64_t{-2}, std::int64_t{-3'000'000'000},
                           std::numeric_limits<std::int64_t>::min()}) {
    std::vector<std::int64_t> rows{0, bad, -1, 5};
    try {
      ring_.put(rows);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
    }
  }
  put({-1, 0, std::int64_t{1} << 40});
}

TEST_F(RowRingTest, NeverOverwritesWhatIsStillToBeRead) {
  std::array<std::int64_t, 1000> memory{};
  RowRing ring(memory);
  struct Piece {
    const std::int64_t* place;
    std::vector<std::int64_t> rows;
    std::shared_ptr<Reader> read;
  };
  std::vector<Piece> pieces;
  Random random(3, 0, 0, 0);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::int64_t> rows(1 + random.below(400));
    std::iota(rows.begin(), rows.end(), i);
    const std::int64_t* place = ring.put(rows);
    auto read = std::make_shared<Reader>(waits_, i);
    ring.read_until(Event(read));
    std::erase_if(pieces, [](const Piece& piece) { return piece.read->done; });
    pieces.push_back({place, rows, read});
    for (const Piece& piece : pieces)
      ASSERT_TRUE(std::equal(piece.rows.begin(), piece.rows.end(), piece.place))
          << i;
  }
}

TEST(RowRing, ForgetsWhatIsRead) {
  std::array<std::int64_t, 100> memory{};
  std::vector<int> waits;
  RowRing ring(memory);
  auto read = std::make_shared<Reader>(waits, 0);
  std::weak_ptr<Reader> remembered = read;
  ring.put(std::vector<std::int64_t>{1});
  ring.read_until(Event(read));
  ring.put(std::vector<std::int64_t>{2});
  ring.read_until(Event(std::make_shared<Reader>(waits, 1)));
  std::exchange(read, nullptr)->done = true;
  EXPECT_FALSE(remembered.expired());
  ring.put(std::vector<std::int64_t>{3});
  EXPECT_TRUE(remembered.expired());
  EXPECT_TRUE(waits.empty());
}

TEST(RowRing, EndsWhenAllIsRead) {
  std::array<std::int64_t, 4> memory{};
  std::vector<int> waits;
  {
    RowRing ring(memory);
    ring.put(std::vector<std::int64_t>{1});
    ring.read_until(Event(std::make_shared<Reader>(waits, 7)));
  }
  EXPECT_THAT(waits, ElementsAre(7));
}

}  // namespace
}  // namespace penstock::cuda
