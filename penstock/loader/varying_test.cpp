#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/transforms/fake/noisy.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class VaryingTest : public testing::TestWithParam<TierCase> {
 protected:
  VaryingTest() {
    device_ = open_device({.kind = GetParam().device, .virtual_time = true});
    words_.options.cache = GetParam().cache;
    words_.options.workers = GetParam().workers;
    options_ = {.tail = Tail::exact,
                .batch_size = 64,
                .workers = GetParam().workers,
                .batches = 12};
  }

  std::vector<SeenBatch> run() {
    return seen_batches(words_.prepare(*device_), options_, *device_);
  }

  static std::string text_at(const std::vector<std::int32_t>& elements,
                             std::size_t first, std::size_t count) {
    std::string text;
    for (std::size_t i = first; i < first + count; ++i)
      text += static_cast<char>(elements[i]);
    return text;
  }

  std::unique_ptr<Device> device_;
  WordsDataset words_;
  LoaderOptions options_;
};

TEST_P(VaryingTest, SamplesArePaddedToTheLongestOfTheirBatch) {
  words_.add_number();
  words_.add_letters(Lengths::padded);
  for (const SeenBatch& batch : run()) {
    std::int64_t rows = std::ssize(batch.ids), longest = 0;
    for (SampleId id : batch.ids)
      longest = std::max(longest, std::ssize(WordsDataset::text_of_row(id)));
    ASSERT_EQ(batch.shapes.at("text"), (Shape{rows, longest}));
    ASSERT_EQ(batch.shapes.at("text_lengths"), Shape{rows});
    auto elements = batch.numbers<std::int32_t>("text");
    auto lengths = batch.numbers<std::int32_t>("text_lengths");
    auto numbers = batch.numbers<float>("number");
    for (std::size_t row = 0; row < batch.ids.size(); ++row) {
      std::string text = WordsDataset::text_of_row(batch.ids[row]);
      EXPECT_EQ(lengths[row], std::ssize(text));
      EXPECT_EQ(numbers[row], static_cast<float>(batch.ids[row]));
      auto width = static_cast<std::size_t>(longest);
      EXPECT_EQ(text_at(elements, row * width, width),
                text + std::string(width - text.size(), '\0'));
    }
  }
}

TEST_P(VaryingTest, SamplesArePackedOneAfterTheOther) {
  words_.add_letters(Lengths::packed);
  for (const SeenBatch& batch : run()) {
    std::string all;
    std::vector<std::int32_t> ends{0};
    for (SampleId id : batch.ids) {
      all += WordsDataset::text_of_row(id);
      ends.push_back(static_cast<std::int32_t>(all.size()));
    }
    ASSERT_EQ(batch.shapes.at("text"), Shape{std::ssize(all)});
    auto elements = batch.numbers<std::int32_t>("text");
    EXPECT_EQ(text_at(elements, 0, all.size()), all);
    EXPECT_EQ(batch.numbers<std::int32_t>("text_cu_seqlens"), ends);
  }
}

TEST_P(VaryingTest, PaddedRowsHaveNoLengthAndNoWeight) {
  words_.add_letters(Lengths::padded);
  words_.add_strip();
  options_.tail = Tail::pad;
  options_.shuffle = false;
  options_.batches = 5;
  SeenBatch last = run().back();
  ASSERT_EQ(last.ids.size(), 64u);
  auto lengths = last.numbers<std::int32_t>("text_lengths");
  auto weights = last.numbers<float>("weight");
  for (std::size_t row = 0; row < 64; ++row) {
    bool there = row < 300 - 4 * 64;
    EXPECT_EQ(last.ids[row] >= 0, there);
    EXPECT_EQ(weights[row], there ? 1 : 0);
    if (!there) {
      EXPECT_EQ(lengths[row], 0);
      EXPECT_EQ(last.bytes["strip"].substr(row * 8, 8), std::string(8, '\0'));
    }
  }
}

TEST_P(VaryingTest, WhatIsDrawnDependsOnSeedEpochAndSampleAlone) {
  words_.add_strip();
  options_.tail = Tail::drop;
  options_.batch_size = 100;
  options_.batches = 6;
  std::vector<SeenBatch> seen = run();
  std::map<SampleId, std::set<std::string>> drawn;
  for (const SeenBatch& batch : seen)
    for (std::size_t row = 0; row < batch.ids.size(); ++row) {
      std::string strip = batch.bytes.at("strip").substr(row * 8, 8);
      EXPECT_THAT(WordsDataset::strip_of_row(batch.ids[row]), HasSubstr(strip));
      drawn[batch.ids[row]].insert(strip);
    }
  std::size_t others = 0;
  for (const auto& [id, strips] : drawn) others += strips.size() > 1;
  EXPECT_GT(others, drawn.size() / 2) << "another epoch draws anew";
  // Started in the middle, by any number of threads, from any tier.
  options_.start = {1, 1};
  options_.batches = 2;
  std::vector<SeenBatch> later = run();
  EXPECT_EQ(later[0], seen[4]);
  EXPECT_EQ(later[1], seen[5]);
  options_.workers = 0;
  words_.options.cache = "ram";
  EXPECT_EQ(run(), later);
}

TEST_P(VaryingTest, OnOtherSidesNothingIsDrawn) {
  words_.add_strip();
  words_.options.split = {.train = 0.5, .val = 0.5};
  options_.side = Side::val;
  options_.batches = 1;
  options_.batch_size = 32;
  SeenBatch batch = run().front();
  for (std::size_t row = 0; row < 32; ++row) {
    std::string whole = WordsDataset::strip_of_row(batch.ids[row]);
    EXPECT_EQ(batch.bytes["strip"].substr(row * 8, 8),
              whole.substr((whole.size() - 8) / 2, 8));
  }
}

TEST_P(VaryingTest, ABatchThatIsTooLargeIsAnErrorThatNamesIt) {
  words_.add_letters(Lengths::padded);
  options_.batch_bytes = 64 * 20 * 4;
  options_.batch_size = 64;
  try {
    run();
    FAIL() << "64 rows of up to 22 letters fit nowhere";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "loader.batch_bytes");
    EXPECT_THAT(error.parts().where, HasSubstr("epoch 0, step 0"));
    EXPECT_THAT(error.parts().why, HasSubstr("has 22 elements"));
  }
}

TEST_P(VaryingTest, AKindThatBreaksItsPromiseIsNamed) {
  for (auto [wrong, expected] :
       {std::pair(Letters::Wrong::throws, "letters failed"),
        std::pair(Letters::Wrong::parses_too_few_rows, "runs for"),
        std::pair(Letters::Wrong::rejects_no_row_of_the_block, "field 'text'"),
        std::pair(Letters::Wrong::too_few_runs, "runs for"),
        std::pair(Letters::Wrong::half_an_element, "not a multiple of")}) {
    WordsDataset words;
    words.options.cache = GetParam().cache;
    words.options.workers = GetParam().workers;
    words.add_letters(Lengths::padded, wrong);
    try {
      words.prepare(*device_);
      FAIL() << expected;
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

TEST_P(VaryingTest, AFinisherThatBreaksItsPromiseIsNamedInItsBatchsTurn) {
  for (auto [wrong, expected] :
       {std::pair(Noisy::Wrong::throws, "noisy failed"),
        std::pair(Noisy::Wrong::rejects_no_row_of_the_call, "field 'noisy'"),
        std::pair(Noisy::Wrong::writes_behind_its_rows,
                  "the kind wrote past")}) {
    WordsDataset words;
    words.options.cache = GetParam().cache;
    words.options.workers = GetParam().workers;
    words.add("noisy", std::make_shared<Noisy>("noisy", "number", wrong));
    Loader loader(words.prepare(*device_), options_, *device_);
    for (int turn = 0; turn < 2; ++turn) try {
        loader.next();
        ADD_FAILURE() << expected;
      } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr(expected));
      }
  }
}

TEST_P(VaryingTest, SubstitutesAreRefusedWhereLengthsDiffer) {
  words_.add_letters(Lengths::padded);
  options_.on_bad = OnBad::substitute;
  try {
    run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "loader.on_bad");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, VaryingTest,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "ram", 2},
                    TierCase{"cpu", "none", 1}, TierCase{"cpu", "none", 8},
                    TierCase{"sim", "ram", 0}, TierCase{"sim", "ram", 8},
                    TierCase{"sim", "none", 2}));

TEST(Varying, IsFinishedOnTheHostSoNoTierOfADevice) {
  auto device = open_device({.kind = "sim", .virtual_time = true});
  WordsDataset words;
  words.add_letters(Lengths::padded);
  words.add_strip();
  words.options.cache = "auto";
  auto set = words.prepare(*device);
  EXPECT_EQ(set->plan().tier, Tier::ram);
  EXPECT_THAT(set->plan().text(),
              HasSubstr("the host finishes fields for every batch"));
  words.options.cache = "device";
  EXPECT_THROW(words.prepare(*device), Error);
}

TEST(Varying, EmptySamplesAloneMakeABatch) {
  auto device = open_device({.kind = "cpu"});
  WordsDataset words(0);
  for (std::int64_t i = 0; i < 10; ++i)
    words.table.rows.push_back({i, std::string(), std::string(8, 'x'), 1.0});
  words.add_letters(Lengths::padded);
  auto set = words.prepare(*device);
  Loader loader(set, {.batch_size = 10, .batches = 1}, *device);
  std::optional<Batch> batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->tensors()[0].view.shape, ElementsAre(10, 0));
}

}  // namespace
}  // namespace penstock
