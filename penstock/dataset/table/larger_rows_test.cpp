#include "penstock/dataset/table/larger_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace penstock {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(LargerRows, KeepsWhatComesFirst) {
  LargerRows rows(3, {}, {});
  EXPECT_FALSE(rows.has(1));
  rows.keep(1, {bytes_of("first")});
  rows.keep(2, {bytes_of(std::string(std::size_t{20} << 20, 'x'))});
  rows.keep(1, {bytes_of("later")});
  LargerRows::Parts parts;
  rows.find(1, parts);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(text_of(parts[0]), "first");
  rows.find(2, parts);
  EXPECT_EQ(parts[0].size(), std::size_t{20} << 20);
  EXPECT_FALSE(rows.has(0));
}

TEST(LargerRows, KeepsNoMoreWhereMemoryIsShort) {
  LargerRows rows(3, {}, {.left = std::numeric_limits<std::size_t>::max()});
  rows.keep(0, {bytes_of("a")});
  rows.keep(1, {bytes_of("b")});
  EXPECT_FALSE(rows.has(0) || rows.has(1));
  EXPECT_FALSE(rows.keeps_at({.epoch = 5}));
}

TEST(LargerRows, KeepsSoManyBytes) {
  LargerRows rows(3, {}, {.epochs = 9, .most = 40});
  rows.keep(0, {bytes_of("12345678")});
  EXPECT_TRUE(rows.keeps_at({}));
  rows.keep(1, {bytes_of("1234567812345678")});
  rows.keep(2, {bytes_of("1")});
  EXPECT_TRUE(rows.has(0) && rows.has(1));
  EXPECT_FALSE(rows.has(2));
  EXPECT_FALSE(rows.keeps_at({}));
}

TEST(LargerRows, AreKeptWhereTheyComeAgainOftenEnough) {
  LargerRows alone(1, {}, {.epochs = 5});
  EXPECT_TRUE(alone.keeps_at({.epoch = 2}));
  EXPECT_FALSE(alone.keeps_at({.epoch = 3}));  // they come once more
  EXPECT_FALSE(alone.keeps_at({.epoch = 4}));
  LargerRows of_two(1, {}, {.epochs = 5, .ranks = 2});
  EXPECT_TRUE(of_two.keeps_at({.epoch = 0}));
  EXPECT_FALSE(of_two.keeps_at({.epoch = 1}));  // about once and a half
}

TEST(LargerRows, AreKeptOnceTheyComeAgainWhereNobodyKnowsTheEpochs) {
  LargerRows alone(1, {}, {});
  EXPECT_FALSE(alone.keeps_at({.epoch = 4}));  // a run that is resumed
  EXPECT_FALSE(alone.keeps_at({.epoch = 4}));
  EXPECT_TRUE(alone.keeps_at({.epoch = 5}));
  EXPECT_TRUE(alone.keeps_at({.epoch = 0}));  // of another loader
  LargerRows of_two(1, {}, {.ranks = 2});
  EXPECT_FALSE(of_two.keeps_at({.epoch = 0}));
  EXPECT_FALSE(of_two.keeps_at({.epoch = 1}));
  EXPECT_TRUE(of_two.keeps_at({.epoch = 2}));
  EXPECT_TRUE(of_two.keeps_at({.epoch = 1}));
}

// What is read ahead is what is made: of a row that comes twice, both or none.
TEST(LargerRows, AreNotReadAgain) {
  class Recording final : public ReadAhead {
   public:
    explicit Recording(std::vector<SampleId>& ids) : ids_(ids) {}
    std::shared_ptr<ItemRead> begin(std::span<const SampleId> ids) override {
      ids_.assign(ids.begin(), ids.end());
      return nullptr;
    }
    void set_threads(int) override {}

   private:
    std::vector<SampleId>& ids_;
  };
  LargerRows rows(9, {}, {});
  rows.keep(4, {bytes_of("a")});
  std::vector<SampleId> read;
  const std::unique_ptr<ReadAhead> others =
      reading_others(std::make_unique<Recording>(read), rows);
  others->begin(std::vector<SampleId>{7, 4, -1, 2, 7, 4});
  EXPECT_EQ(read, (std::vector<SampleId>{2, 7, 7}));
}

}  // namespace
}  // namespace penstock
