#include "penstock/dataset/streamed/row_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/dataset/fake/fake_dataset.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "no error"});
}

/// Streams a counting table.
class RowStreamTest : public testing::TestWithParam<int> {
 protected:
  RowStreamTest() {
    options_.fields = fake_fields();
    options_.statistics.resize(options_.fields.size());
    options_.workers = GetParam();
    options_.batch_rows = 64;
  }

  std::unique_ptr<RowStream> open() {
    auto made = std::make_unique<FakeSource>(
        counting_table(table_), requests_of(options_.fields), trouble_);
    source_ = made.get();
    return std::make_unique<RowStream>(std::move(made), options_);
  }
  /// The keys of all rows, in the order of the stream, and the rows of each
  /// window.
  std::vector<std::int64_t> keys_of(RowStream& stream) {
    std::vector<std::int64_t> keys;
    windows_.clear();
    while (auto window = stream.next()) {
      windows_.push_back(window->rows());
      for (SampleId id = 0; id < window->rows(); ++id)
        keys.push_back(window->key_of(id).integer());
    }
    return keys;
  }

  CountingOptions table_;
  FakeTrouble trouble_;
  RowStreamOptions options_;
  FakeSource* source_ = nullptr;
  std::vector<std::int64_t> windows_;
};

TEST_P(RowStreamTest, GivesAllRowsInTheOrderOfTheSource) {
  table_.rows = 50'000;
  const std::vector<std::int64_t> keys = keys_of(*open());
  ASSERT_EQ(std::ssize(keys), 50'000);
  for (std::int64_t i = 0; i < 50'000; ++i)
    ASSERT_EQ(keys[static_cast<std::size_t>(i)], 10 * i);
}

TEST_P(RowStreamTest, CutsWindowsOfWholeBatches) {
  table_.rows = 140'001;
  options_.batch_rows = 1000;
  const std::vector<std::int64_t> keys = keys_of(*open());
  ASSERT_EQ(std::ssize(keys), table_.rows);
  for (std::size_t i = 0; i < keys.size(); ++i)
    ASSERT_EQ(keys[i], 10 * static_cast<std::int64_t>(i));
  ASSERT_GT(windows_.size(), 2U);
  for (std::size_t i = 0; i + 1 < windows_.size(); ++i)
    EXPECT_EQ(windows_[i] % 1000, 0);
  EXPECT_EQ(windows_.back() % 1000, 1);
}

TEST_P(RowStreamTest, GivesEachOfSeveralTakersAWindowOfTheSameSize) {
  table_.rows = 5000;
  options_.takers = 2;
  const std::vector<std::int64_t> keys = keys_of(*open());
  EXPECT_EQ(std::ssize(keys), 5000);
  EXPECT_THAT(windows_, testing::ElementsAre(512, 512, 1024, 1024, 1928));
}

TEST_P(RowStreamTest, KeepsTheOrderOfArrivalWhereKeysAreScrambled) {
  table_.rows = 5000;
  table_.scrambled = true;
  const auto arrived = counting_table(table_).rows;
  const std::vector<std::int64_t> keys = keys_of(*open());
  ASSERT_EQ(keys.size(), arrived.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    ASSERT_EQ(keys[i], std::get<std::int64_t>(arrived[i][0]));
}

TEST_P(RowStreamTest, StopsAtABadRowThatItNames) {
  table_.bad_row = 777;
  const auto stream = open();
  const Error error = error_of([&] { keys_of(*stream); });
  EXPECT_EQ(error.kind(), ErrorKind::transform);
  EXPECT_EQ(error.parts().code, "data.bad_rows");
  EXPECT_THAT(error.parts().where, HasSubstr("row 7770, column 'value'"));
}

TEST_P(RowStreamTest, LeavesOutBadRowsAndCountsThem) {
  table_.bad_row = 777;
  options_.skip_bad = true;
  const auto stream = open();
  const std::vector<std::int64_t> keys = keys_of(*stream);
  EXPECT_EQ(keys.size(), 999U);
  EXPECT_EQ(std::ranges::count(keys, 7770), 0);
  EXPECT_EQ(stream->left_out().bad_rows, 1);
  ASSERT_EQ(stream->left_out().bad.size(), 1U);
  EXPECT_EQ(stream->left_out().bad[0].shown_key, "7770");
}

TEST_P(RowStreamTest, HandsOnWhatReadingThrows) {
  table_.rows = 50'000;
  trouble_.fail_at_block = 1;  // on a slow machine there are few, large blocks
  for (int time = 0; time < 4; ++time) {  // whatever thread comes first
    const auto stream = open();
    const Error error = error_of([&] { keys_of(*stream); });
    EXPECT_EQ(error.kind(), ErrorKind::source) << error.what();
  }
}

TEST_P(RowStreamTest, EndsInTheMiddle) {
  table_.rows = 200'000;
  const auto stream = open();
  ASSERT_NE(stream->next(), nullptr);
  EXPECT_LT(source_->counts().rows, 200'000) << "it does not read all ahead";
}

TEST_P(RowStreamTest, GivesNothingOfAnEmptySource) {
  table_.rows = 0;
  EXPECT_EQ(open()->next(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Workers, RowStreamTest, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
