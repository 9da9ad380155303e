#include "penstock/sources/hdf5/decoded_chunks.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "penstock/base/error.h"

namespace penstock::hdf5 {
namespace {

DecodedChunks::Chunk chunk_of(std::size_t bytes) {
  auto chunk = std::make_shared<DecodedChunk>();
  chunk->bytes.resize(bytes);
  return chunk;
}

TEST(DecodedChunks, AreDecodedOnceWhileTheyFit) {
  DecodedChunks chunks(1000);
  for (int time = 0; time < 3; ++time)
    for (std::int64_t chunk = 0; chunk < 10; ++chunk)
      chunks.get({nullptr, chunk}, true, [] { return chunk_of(100); });
  EXPECT_EQ(chunks.decoded(), 10);
}

TEST(DecodedChunks, GoInTheOrderInWhichTheyWereUsed) {
  DecodedChunks chunks(250);
  auto get = [&](std::int64_t chunk) {
    chunks.get({nullptr, chunk}, true, [] { return chunk_of(100); });
    return chunks.decoded();
  };
  EXPECT_EQ(get(1), 1);
  EXPECT_EQ(get(2), 2);
  EXPECT_EQ(get(1), 2);
  EXPECT_EQ(get(3), 3) << "2 goes";
  EXPECT_EQ(get(1), 3);
  EXPECT_EQ(get(2), 4);
}

TEST(DecodedChunks, AreNotKeptWhereNobodyNeedsThemAgain) {
  DecodedChunks chunks(1000);
  chunks.get({nullptr, 1}, false, [] { return chunk_of(100); });
  chunks.get({nullptr, 1}, true, [] { return chunk_of(100); });
  EXPECT_EQ(chunks.decoded(), 2);
}

TEST(DecodedChunks, LargerThanTheBudgetAreHandedOutAllTheSame) {
  DecodedChunks chunks(10);
  for (int time = 0; time < 2; ++time)
    EXPECT_EQ(chunks.get({nullptr, 1}, true, [] { return chunk_of(100); })
                  ->bytes.size(),
              100U);
}

TEST(DecodedChunks, AreDecodedOnceByManyThreads) {
  for (int readers : {1, 2, 8}) {
    DecodedChunks chunks(1 << 20);
    std::vector<std::jthread> threads;
    for (int reader = 0; reader < readers; ++reader)
      threads.emplace_back([&] {
        for (std::int64_t chunk = 0; chunk < 500; ++chunk)
          chunks.get({nullptr, chunk}, true, [] { return chunk_of(64); });
      });
    threads.clear();
    EXPECT_EQ(chunks.decoded(), 500);
  }
}

TEST(DecodedChunks, ThatWereUsedUpMakeRoom) {
  DecodedChunks chunks(250);
  auto get = [&](std::int64_t chunk) {
    chunks.get({nullptr, chunk}, true, [] { return chunk_of(100); });
    return chunks.decoded();
  };
  get(1);
  get(2);
  chunks.forget({nullptr, 2});
  chunks.forget({nullptr, 7});
  EXPECT_EQ(get(3), 3);
  EXPECT_EQ(get(1), 3) << "2 made room, which was used later";
  EXPECT_EQ(get(2), 4);
}

TEST(DecodedChunks, GiveTheirMemoryToThoseThatComeNext) {
  auto chunks = std::make_unique<DecodedChunks>(1000);
  auto first = chunks->empty_chunk(100);
  const std::byte* memory = first->bytes.data();
  auto second = chunks->empty_chunk(100);
  EXPECT_NE(second->bytes.data(), memory);
  first.reset();
  EXPECT_EQ(chunks->empty_chunk(200)->bytes.size(), 200U);
  first = chunks->empty_chunk(100);
  EXPECT_EQ(first->bytes.data(), memory);
  EXPECT_TRUE(first->why.empty());
  chunks.reset();  // chunks outlive it
  second.reset();
  EXPECT_EQ(first->bytes.size(), 100U);
}

TEST(DecodedChunks, ThatCannotBeReadAreTriedAgain) {
  DecodedChunks chunks(1000);
  auto fails = []() -> DecodedChunks::Chunk {
    throw Error(ErrorKind::source, {.what = "no"});
  };
  EXPECT_THROW(chunks.get({nullptr, 1}, true, fails), Error);
  EXPECT_NE(chunks.get({nullptr, 1}, true, [] { return chunk_of(1); }),
            nullptr);
}

TEST(DecodedChunks, ThatAnotherThreadDecodesNeedNotBeWaitedFor) {
  DecodedChunks chunks(1000);
  const DecodedChunks::Key key = {nullptr, 1};
  chunks.get(key, true, [&] {
    std::jthread other([&] {
      EXPECT_EQ(chunks.get(
                    key, true, [] { return chunk_of(1); }, false),
                nullptr);
    });
    other.join();
    return chunk_of(100);
  });
  EXPECT_NE(chunks.get(
                key, true, [] { return chunk_of(1); }, false),
            nullptr);
  EXPECT_EQ(chunks.decoded(), 1);
}

}  // namespace
}  // namespace penstock::hdf5
