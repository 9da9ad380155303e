// Rows for a language model, as a training loop sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/dataset/fake/token_table.h"
#include "penstock/loader/seen_batches.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::int64_t kSize = 64;

std::vector<std::string> names_of(const SeenBatch& batch) {
  std::vector<std::string> names;
  for (const auto& [name, shape] : batch.shapes) names.push_back(name);
  return names;
}

/// Checks a batch against the documents, and notes which tokens it has.
class Checked {
 public:
  void look(const SeenBatch& batch) {
    const Shape shape = batch.shapes.at("input_ids");
    ASSERT_EQ(shape[1], kSize);
    for (const char* name : {"labels", "position_ids", "document_ids"})
      ASSERT_EQ(batch.shapes.at(name), shape);
    const auto ends = batch.numbers<std::int32_t>("cu_seqlens");
    ASSERT_EQ(ends.front(), 0);
    ASSERT_EQ(ends.back(), shape[0] * kSize);
    ASSERT_EQ(ends.size(), batch.ids.size() + 1);
    ids = batch.numbers<std::int64_t>("input_ids");
    labels = batch.numbers<std::int64_t>("labels");
    positions = batch.numbers<std::int64_t>("position_ids");
    documents = batch.numbers<std::int64_t>("document_ids");
    for (std::size_t d = 0; d < batch.ids.size(); ++d)
      look(static_cast<std::size_t>(ends[d]),
           static_cast<std::size_t>(ends[d + 1]), batch.ids[d]);
  }
  /// By document: how often each of its tokens was seen.
  std::map<SampleId, std::map<std::int64_t, int>> seen;

 private:
  std::vector<std::int64_t> ids, labels, positions, documents;

  void look(std::size_t begin, std::size_t end, SampleId document) {
    ASSERT_LT(begin, end);
    ASSERT_EQ(begin / kSize, (end - 1) / kSize) << "lies in one row";
    const auto tokens = document < 0 ? std::vector<std::int64_t>(end - begin, 3)
                                     : TokenTable::tokens_of(document);
    // Which piece of its document this is, the order of its tokens says.
    const auto first = static_cast<std::size_t>(
        std::ranges::find(tokens, ids[begin]) - tokens.begin());
    auto& of_document = seen[document];
    for (std::size_t i = begin; i < end; ++i) {
      ASSERT_LT(first + i - begin, tokens.size());
      EXPECT_EQ(ids[i], tokens[first + i - begin]);
      EXPECT_EQ(labels[i], document < 0 || i == begin ? -100 : ids[i]);
      EXPECT_EQ(positions[i], static_cast<std::int64_t>(i - begin));
      EXPECT_EQ(documents[i], document);
      if (document >= 0)
        ++of_document[static_cast<std::int64_t>(first + i - begin)];
    }
  }
};

class PackedTest : public testing::TestWithParam<TierCase> {
 protected:
  PackedTest() {
    device_ = open_for_test(GetParam().device);
    table_.options.cache = GetParam().cache;
    table_.options.workers = GetParam().workers;
    table_.options.store_dir = testing::TempDir() + "penstock-packed-stores";
    options_ = {.tail = Tail::exact,
                .batch_size = 8,
                .workers = GetParam().workers,
                .batches = -1};
  }
  std::vector<SeenBatch> run() {
    auto set = table_.prepare(*device_);
    LoaderOptions options = options_;
    if (options.batches < 0)
      options.batches = steps_per_epoch(order_of(options, *set));
    return seen_batches(set, options, *device_);
  }
  void expect_an_epoch() {
    Checked checked;
    for (const SeenBatch& batch : run()) checked.look(batch);
    for (std::int64_t i = 0; i < 300; ++i) {
      const auto tokens = TokenTable::tokens_of(i);
      ASSERT_EQ(checked.seen[i].size(), tokens.size()) << "document " << i;
      for (auto [token, times] : checked.seen[i]) ASSERT_EQ(times, 1);
    }
  }

  std::unique_ptr<Device> device_;
  TokenTable table_;
  LoaderOptions options_;
};

constexpr const char* kField =
    R"(, "max_length": 64, "vocab_size": 5000, "pad_id": 3)";

TEST_P(PackedTest, AnEpochHasEveryTokenOnceWithItsDocumentsBoundaries) {
  table_.field(kField);
  expect_an_epoch();
}

TEST_P(PackedTest, WithoutAVocabularyIdsMayBeAnyOf32Bits) {
  table_.field(R"(, "max_length": 64, "pad_id": 3)");
  expect_an_epoch();
}

TEST_P(PackedTest, WrappedRowsHaveNoPaddingButInTheLast) {
  table_.field(std::string(kField) + R"(, "pack": "wrapped")");
  expect_an_epoch();
  std::int64_t padding = 0;
  for (const SeenBatch& batch : run())
    padding += std::ranges::count(batch.ids, -1);
  EXPECT_LE(padding, 1);
}

TEST_P(PackedTest, ResumesInTheMiddleOfAnEpoch) {
  table_.field(std::string(kField) + R"(, "repack": true)");
  options_.batches =
      2 * steps_per_epoch(order_of(options_, *table_.prepare(*device_)));
  const std::vector<SeenBatch> all = run();
  const auto steps = static_cast<std::int64_t>(all.size()) / 2;
  for (std::int64_t at : {std::int64_t{3}, steps - 1, steps, steps + 5}) {
    options_.start = {at / steps, at % steps};
    options_.batches = 2;
    const std::vector<SeenBatch> later = run();
    EXPECT_EQ(later[0], all[static_cast<std::size_t>(at)]);
    EXPECT_EQ(later[1], all[static_cast<std::size_t>(at + 1)]);
  }
  EXPECT_NE(all[0], all[static_cast<std::size_t>(steps)]);
}

TEST_P(PackedTest, RanksShareTheRowsOfABatch) {
  table_.field(kField);
  options_.tail = Tail::drop;
  const std::vector<SeenBatch> all = run();
  std::vector<std::vector<SeenBatch>> of_rank;
  for (int rank : {0, 1}) {
    options_.rank = {rank, 2};
    of_rank.push_back(run());
    ASSERT_EQ(of_rank.back().size(), all.size());
  }
  for (std::size_t b = 0; b < all.size(); ++b)
    EXPECT_EQ(all[b].bytes.at("input_ids"),
              of_rank[0][b].bytes.at("input_ids") +
                  of_rank[1][b].bytes.at("input_ids"));
}

// As many documents as rows, and other ones: rows are not samples.
TEST_P(PackedTest, ARowThatOneDocumentFillsHoldsThatDocument) {
  table_.field(R"(, "max_length": 1, "vocab_size": 5000)");
  std::map<std::pair<SampleId, std::int64_t>, int> seen;
  for (const SeenBatch& batch : run()) {
    const auto ids = batch.numbers<std::int64_t>("input_ids");
    const auto documents = batch.numbers<std::int64_t>("document_ids");
    EXPECT_EQ(documents, batch.ids);
    for (std::size_t row = 0; row < ids.size(); ++row)
      ++seen[{documents[row], ids[row]}];
  }
  for (std::int64_t i = 0; i < 300; ++i)
    for (std::int64_t token : TokenTable::tokens_of(i))
      EXPECT_EQ((seen[{i, token}]), 1) << "document " << i;
}

TEST_P(PackedTest, ATailThatIsPaddedHasWholeRowsOfPadding) {
  table_.field(kField);
  options_.tail = Tail::pad;
  options_.batch_size = 1000;
  const SeenBatch batch = run().at(0);
  EXPECT_EQ(batch.shapes.at("input_ids"), (Shape{1000, kSize}));
  Checked().look(batch);
  const auto weights = batch.numbers<float>("weight");
  EXPECT_EQ(weights.front(), 1);
  EXPECT_EQ(weights.back(), 0);
}

TEST_P(PackedTest, WithoutPackingDocumentsArePaddedToTheLongest) {
  table_.field(R"(, "max_length": 40, "pad_id": 3, "pack": "none")");
  for (const SeenBatch& batch : run()) {
    EXPECT_THAT(names_of(batch),
                ElementsAre("attention_mask", "input_ids", "input_ids_lengths",
                            "labels", "position_ids"));
    const Shape shape = batch.shapes.at("input_ids");
    const auto width = static_cast<std::size_t>(shape[1]);
    ASSERT_LE(width, 40u);
    const auto ids = batch.numbers<std::int64_t>("input_ids");
    const auto labels = batch.numbers<std::int64_t>("labels");
    const auto mask = batch.numbers<std::int64_t>("attention_mask");
    for (std::size_t row = 0; row < batch.ids.size(); ++row) {
      const auto tokens = TokenTable::tokens_of(batch.ids[row]);
      const std::size_t count = std::min<std::size_t>(tokens.size(), 40);
      for (std::size_t i = 0; i < width; ++i) {
        const std::size_t at = row * width + i;
        EXPECT_EQ(mask[at], i < count ? 1 : 0);
        EXPECT_EQ(ids[at], i < count ? tokens[i] : 3);
        EXPECT_EQ(labels[at], i > 0 && i < count ? tokens[i] : -100);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, PackedTest,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "ram", 1},
                    TierCase{"cpu", "ram", 2}, TierCase{"cpu", "ram", 8},
                    TierCase{"cpu", "none", 2}, TierCase{"cpu", "disk", 2},
                    TierCase{"sim", "ram", 2}, TierCase{"sim", "disk", 8},
                    TierCase{"sim", "none", 0}));

std::string refused(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.parts().code + ": " + error.what();
  }
  return "nothing was refused";
}

class PackedSettingsTest : public testing::Test {
 protected:
  std::string prepare() {
    return refused([&] { set_ = table_.prepare(*device_); });
  }
  std::unique_ptr<Device> device_ = open_for_test("cpu");
  TokenTable table_;
  std::shared_ptr<const Dataset> set_;
};

TEST_F(PackedSettingsTest, NamesAreBareForTheOnlyFieldOrTokens) {
  auto names = [](const TokenTable& table) {
    std::vector<std::string> all;
    for (const BatchTensor& tensor : batch_tensors(
             {.outputs = outputs_of(table.options.fields)}, Side::train, false))
      all.push_back(tensor.name);
    return all;
  };
  const std::vector<std::string> bare = {"input_ids", "cu_seqlens", "labels",
                                         "position_ids", "document_ids"};
  EXPECT_EQ(names(table_.field("", "prose")), bare);
  EXPECT_EQ(names(table_.field("", "tokens")), bare);
  table_.field(R"(, "pack": "none")", "prose",
               R"(, "number": {"columns": ["number"]})");
  EXPECT_THAT(
      names(table_),
      ElementsAre("prose_input_ids", "prose_input_ids_lengths", "prose_labels",
                  "prose_position_ids", "prose_attention_mask", "number"));
}

TEST_F(PackedSettingsTest, StatisticsSayWhatTheDocumentsAreLike) {
  table_.field(R"(, "max_length": 50)");
  table_.prepare(*device_);
  auto set = table_.prepare(*device_);
  const Json found = *set->statistics().find("tokens");
  std::int64_t tokens = 0, empty = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    tokens += i * 37 % 61;
    empty += i % 61 == 0;
  }
  EXPECT_EQ(found.find("documents")->integer(), 300);
  EXPECT_EQ(found.find("tokens")->integer(), tokens);
  EXPECT_EQ(found.find("empty")->integer(), empty);
  EXPECT_EQ(found.find("longest")->integer(), 60);
  const auto& bins = set->facts().bins;
  ASSERT_NE(bins, nullptr);
  EXPECT_EQ(bins->numbers(Side::train).elements, tokens);
  EXPECT_THAT(bins->numbers(Side::train).text(),
              HasSubstr(std::to_string(empty) + " without a token"));
  EXPECT_GT(bins->numbers(Side::train).cut, 0);
}

TEST_F(PackedSettingsTest, IdsThatTheVocabularyLacksAreNamed) {
  table_.field(R"(, "vocab_size": 2000)");
  EXPECT_THAT(prepare(),
              testing::AllOf(HasSubstr("data.bad_rows"), HasSubstr("is 2000"),
                             HasSubstr("below 2000")));
}

TEST_F(PackedSettingsTest, RowsThatAreNoListsOfIdsAreNamed) {
  for (auto [bad, why] : std::vector<std::pair<const char*, const char*>>{
           {"", "expected a list of token ids"},
           {"[1, 2", "expected a list of token ids"},
           {"{}", "expected a list of token ids"},
           {"[1, -2]", "token 1 is -2"},
           {"[1.5]", "token 0 is 1.5"},
           {"[4294967296]", "token 0 is 4294967296"},
           {"[\"a\"]", "token 0 is \"a\""},
           {"[1 2]", "expected a list of token ids"}}) {
    TokenTable table(3);
    table.table.rows[1][1] = std::string(bad);
    table.field("");
    EXPECT_THAT(refused([&] { table.prepare(*device_); }), HasSubstr(why))
        << bad;
  }
  TokenTable table(3);
  table.table.rows[1][1] = nullptr;
  table.field("");
  EXPECT_THAT(refused([&] { table.prepare(*device_); }), HasSubstr("is NULL"));
}

TEST_F(PackedSettingsTest, OtherFieldsCannotStandBesideBins) {
  table_.field("", "tokens", R"(, "number": {"columns": ["number"]})");
  EXPECT_THAT(prepare(), HasSubstr("packing.fields"));
  table_.field("");
  table_.options.drawing = {.column = "number"};
  EXPECT_THAT(prepare(), HasSubstr("packing.drawn"));
}

TEST_F(PackedSettingsTest, ColumnsOfNumbersAreNoTokens) {
  table_.field("");
  table_.table.schema.columns[1].declared = "float64";
  for (auto& row : table_.table.rows) row[1] = 1.0;
  EXPECT_THAT(prepare(), HasSubstr("fields.tokens"));
}

TEST_F(PackedSettingsTest, SettingsThatContradictEachOtherAreNamed) {
  for (auto [settings, why] : std::vector<std::pair<const char*, const char*>>{
           {R"(, "pack": "wrapped", "repack": true)", "can pack again"},
           {R"(, "pack": "none", "pack_window": 9)", "pack in windows"},
           {R"(, "vocab_size": 9, "pad_id": 9)", "pad_id"}})
    EXPECT_THAT(refused([&, with = settings] { table_.field(with); }),
                HasSubstr(why));
}

}  // namespace
}  // namespace penstock
