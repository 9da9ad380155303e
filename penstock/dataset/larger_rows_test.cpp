#include "penstock/dataset/larger_rows.h"

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
  LargerRows rows(3, {}, true, 0);
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
  LargerRows rows(3, {}, true, std::numeric_limits<std::size_t>::max());
  rows.keep(0, {bytes_of("a")});
  rows.keep(1, {bytes_of("b")});
  EXPECT_FALSE(rows.has(0) || rows.has(1));
}

TEST(LargerRows, AreUsedFromTheFirstEpochOnOrFromTheSecond) {
  LargerRows first(1, {}, true, 0);
  EXPECT_TRUE(first.used_at({.epoch = 0}));
  LargerRows second(1, {}, false, 0);
  EXPECT_FALSE(second.used_at({.epoch = 4}));  // a run that is resumed
  EXPECT_FALSE(second.used_at({.epoch = 4}));
  EXPECT_TRUE(second.used_at({.epoch = 5}));
  EXPECT_TRUE(second.used_at({.epoch = 0}));  // of another loader
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
  LargerRows rows(9, {}, true, 0);
  rows.keep(4, {bytes_of("a")});
  std::vector<SampleId> read;
  const std::unique_ptr<ReadAhead> others =
      reading_others(std::make_unique<Recording>(read), rows);
  others->begin(std::vector<SampleId>{7, 4, -1, 2, 7, 4});
  EXPECT_EQ(read, (std::vector<SampleId>{2, 7, 7}));
}

}  // namespace
}  // namespace penstock
