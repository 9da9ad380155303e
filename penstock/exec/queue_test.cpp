#include "penstock/exec/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "penstock/exec/stage.h"

namespace penstock {
namespace {

TEST(Queue, HandsOutWhatIsLeftAfterClose) {
  Queue<int> queue(2);
  EXPECT_TRUE(queue.push(1));
  EXPECT_TRUE(queue.push(2));
  queue.close();
  EXPECT_FALSE(queue.push(3));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(Queue, CloseWakesAProducerThatWaitsForRoom) {
  Queue<int> queue(1);
  queue.push(1);
  std::thread producer([&] { EXPECT_FALSE(queue.push(2)); });
  queue.close();
  producer.join();
}

TEST(Queue, CloseWakesAConsumerThatWaitsForAnItem) {
  Queue<int> queue(1);
  std::thread consumer([&] { EXPECT_EQ(queue.pop(), std::nullopt); });
  queue.close();
  consumer.join();
}

TEST(Queue, ThrowsTheProducersErrorAfterTheLastItem) {
  Queue<int> queue(2);
  queue.push(7);
  queue.fail(std::make_exception_ptr(
      Error(ErrorKind::source, {.what = "the disk is gone"})));
  EXPECT_EQ(queue.pop(), 7);
  EXPECT_THROW(queue.pop(), Error);
}

TEST(Queue, KeepsTheFirstOfTwoErrors) {
  Queue<int> queue(1);
  queue.fail(std::make_exception_ptr(Error(ErrorKind::source, {.what = "a"})));
  queue.fail(std::make_exception_ptr(Error(ErrorKind::device, {.what = "b"})));
  try {
    queue.pop();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
  }
}

TEST(Queue, TryingNeverWaits) {
  Queue<int> queue(1);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_FALSE(queue.try_push(2)) << "full";
  EXPECT_EQ(queue.try_pop(), 1);
  queue.close();
  EXPECT_FALSE(queue.try_push(3)) << "closed";
}

TEST(Queue, CarriesThingsThatOnlyMove) {
  Queue<std::unique_ptr<int>> queue(1);
  queue.push(std::make_unique<int>(3));
  EXPECT_EQ(**queue.pop(), 3);
}

class QueueWorkers : public testing::TestWithParam<int> {};

TEST_P(QueueWorkers, LosesAndDoublesNothing) {
  constexpr int kEach = 2000;
  Queue<int> queue(3);
  std::atomic<std::int64_t> sum{0};
  Stage consumers({.name = "take", .workers = 2, .body = [&](int) {
                     while (std::optional<int> item = queue.pop()) sum += *item;
                   }});
  Stage producers({.name = "give",
                   .workers = GetParam(),
                   .body =
                       [&](int worker) {
                         for (int i = 0; i < kEach; ++i)
                           queue.push(worker * kEach + i);
                       },
                   .last = [&] { queue.close(); }});
  producers.join();
  consumers.join();
  std::int64_t n = std::int64_t{GetParam()} * kEach;
  EXPECT_EQ(sum, n * (n - 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(Workers, QueueWorkers, testing::Values(1, 2, 8));

}  // namespace
}  // namespace penstock
