#include "penstock/device/cuda/argument_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
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

using Words = std::vector<std::int64_t>;

const std::int64_t* put_words(ArgumentRing& ring, const Words& words) {
  std::byte* place = ring.take(words.size() * sizeof(words[0]));
  std::memcpy(place, words.data(), words.size() * sizeof(words[0]));
  return reinterpret_cast<const std::int64_t*>(place);
}

class ArgumentRingTest : public testing::Test {
 protected:
  const std::int64_t* put(const Words& words) {
    const std::int64_t* place = put_words(ring_, words);
    EXPECT_EQ(Words(place, place + words.size()), words);
    ring_.read_until(Event(std::make_shared<Reader>(waits_, next_++)));
    return place;
  }
  std::array<std::int64_t, 10> memory_{};
  std::vector<int> waits_;  // the numbers of the events, from 0
  int next_ = 0;
  ArgumentRing ring_{std::as_writable_bytes(std::span(memory_))};
};

TEST_F(ArgumentRingTest, PutsOnePieceBehindTheOther) {
  EXPECT_EQ(put({1, 2, 3}), memory_.data());
  EXPECT_EQ(put({4, -1}), memory_.data() + 3);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(ArgumentRingTest, StartsAgainWhereTheEndHasNoRoom) {
  put({1, 2, 3, 4});
  put({5, 6, 7, 8});
  EXPECT_EQ(put({9, 10, 11}), memory_.data());
  EXPECT_THAT(waits_, ElementsAre(0));
}

TEST_F(ArgumentRingTest, WaitsForWhatItWouldOverwriteAndForNoMore) {
  put({1, 2, 3});
  put({4, 5, 6});
  put({7, 8, 9});
  EXPECT_EQ(put({1, 2, 3, 4}), memory_.data());
  EXPECT_THAT(waits_, ElementsAre(0, 1));
  put({5, 6});
  EXPECT_THAT(waits_, ElementsAre(0, 1));
}

TEST_F(ArgumentRingTest, WaitsForASingleWordThatItWouldOverwrite) {
  for (int i = 0; i < 10; ++i) put({i});
  EXPECT_TRUE(waits_.empty());
  put({10});
  EXPECT_THAT(waits_, ElementsAre(0));
  put({11, 12});
  EXPECT_THAT(waits_, ElementsAre(0, 1, 2));
}

TEST_F(ArgumentRingTest, HoldsAsManyAsItsMemory) {
  put({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  put({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_THAT(waits_, ElementsAre(0));
  EXPECT_THROW(ring_.take(81), Error);
}

TEST_F(ArgumentRingTest, GivesPlacesAtMultiplesOfEight) {
  std::byte* first = ring_.take(3);
  EXPECT_EQ(ring_.take(9), first + 8);
  EXPECT_EQ(ring_.take(1), first + 24);
}

TEST_F(ArgumentRingTest, NeverOverwritesWhatIsStillToBeRead) {
  std::array<std::int64_t, 1000> memory{};
  ArgumentRing ring(std::as_writable_bytes(std::span(memory)));
  struct Piece {
    const std::int64_t* place;
    Words words;
    std::shared_ptr<Reader> read;
  };
  std::vector<Piece> pieces;
  Random random(3, 0, 0, 0);
  for (int i = 0; i < 2000; ++i) {
    Words words(1 + random.below(400));
    std::iota(words.begin(), words.end(), i);
    const std::int64_t* place = put_words(ring, words);
    auto read = std::make_shared<Reader>(waits_, i);
    ring.read_until(Event(read));
    std::erase_if(pieces, [](const Piece& piece) { return piece.read->done; });
    pieces.push_back({place, words, read});
    for (const Piece& piece : pieces)
      ASSERT_TRUE(
          std::equal(piece.words.begin(), piece.words.end(), piece.place))
          << i;
  }
}

TEST(ArgumentRing, ForgetsWhatIsRead) {
  std::array<std::int64_t, 100> memory{};
  std::vector<int> waits;
  ArgumentRing ring(std::as_writable_bytes(std::span(memory)));
  auto read = std::make_shared<Reader>(waits, 0);
  std::weak_ptr<Reader> remembered = read;
  put_words(ring, {1});
  ring.read_until(Event(read));
  put_words(ring, {2});
  ring.read_until(Event(std::make_shared<Reader>(waits, 1)));
  std::exchange(read, nullptr)->done = true;
  EXPECT_FALSE(remembered.expired());
  put_words(ring, {3});
  EXPECT_TRUE(remembered.expired());
  EXPECT_TRUE(waits.empty());
}

TEST(ArgumentRing, EndsWhenAllIsRead) {
  std::array<std::int64_t, 4> memory{};
  std::vector<int> waits;
  {
    ArgumentRing ring(std::as_writable_bytes(std::span(memory)));
    put_words(ring, {1});
    ring.read_until(Event(std::make_shared<Reader>(waits, 7)));
  }
  EXPECT_THAT(waits, ElementsAre(7));
}

}  // namespace
}  // namespace penstock::cuda
