#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/sources/fake/fake_store.h"

// Batches of several sources that are mixed.

namespace penstock {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Field> fields_of(const std::string& json) {
  return parse_fields(Json::parse(json, "test"), "fields");
}

class MixedSources : public testing::TestWithParam<TierCase> {
 protected:
  MixedSources() : words_{WordsDataset(300), WordsDataset(90)} {
    std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '-');
    dir_ = std::filesystem::path(testing::TempDir()) /
           ("mixed-" + std::to_string(::getpid()) + "-" + name);
    std::filesystem::remove_all(dir_);
    for (auto& row : words_[1].table.rows)  // the second source has others
      row[3] = 1000 + std::get<double>(row[3]);
    for (WordsDataset& words : words_) {
      words.table.version = "1";
      words.add_number();
      words.add_letters(Lengths::packed);
      words.add_strip();
    }
    options_ = {.seed = 4,
                .tail = Tail::pad,
                .batch_size = 32,
                .workers = GetParam().workers,
                .batches = 30};
  }
  ~MixedSources() override { std::filesystem::remove_all(dir_); }

  std::shared_ptr<const Dataset> prepare(const std::string& cache,
                                         Device& device) {
    std::vector<MixedSourceOptions> options;
    std::vector<std::unique_ptr<Source>> sources;
    for (std::size_t s = 0; s < words_.size(); ++s) {
      options.push_back({.rows = words_[s].options, .weight = weights_[s]});
      options.back().rows.cache = cache;
      options.back().rows.store_dir = dir_.string();
      sources.push_back(std::make_unique<FakeSource>(
          words_[s].table, requests_of(words_[s].options)));
    }
    return prepare_mixed(std::move(options), std::move(sources), exhausted_,
                         device);
  }
  std::shared_ptr<const Dataset> prepare() {
    return prepare(GetParam().cache, *device_);
  }
  std::vector<SeenBatch> batches() {
    return seen_batches(prepare(), options_, *device_);
  }
  /// The same batches where nothing is spread over threads or tiers.
  std::vector<SeenBatch> as_in_memory() {
    LoaderOptions options = options_;
    options.workers = 0;
    auto cpu = open_for_test("cpu");
    return seen_batches(prepare("ram", *cpu), options, *cpu);
  }
  Error refused() {
    try {
      prepare();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorKind::internal, {.what = "accepted"});
  }
  void use_fields(const std::string& json) {
    for (WordsDataset& words : words_) words.options.fields = fields_of(json);
  }

  std::filesystem::path dir_;
  std::vector<WordsDataset> words_;
  std::vector<double> weights_{1, 1};
  Exhausted exhausted_ = Exhausted::stop;
  LoaderOptions options_;
  std::unique_ptr<Device> device_ = open_for_test(GetParam().device);
};

TEST_P(MixedSources, EachRowSaysWhereItCameFromAndIsThatOfItsSource) {
  weights_ = {2, 1};
  options_.tail = Tail::exact;
  auto set = prepare();
  ASSERT_EQ(set->facts().mixture->epoch_samples(), 270);
  options_.batches = 9;
  std::map<std::int32_t, std::set<SampleId>> ids;
  for (const SeenBatch& batch : seen_batches(set, options_, *device_)) {
    const auto source = batch.numbers<std::int32_t>("source");
    const auto number = batch.numbers<float>("number");
    const auto ends = batch.numbers<std::int32_t>("text_cu_seqlens");
    const auto letters = batch.numbers<std::int32_t>("text");
    ASSERT_EQ(batch.shapes.at("source"), Shape{std::ssize(batch.ids)});
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      const SampleId id = batch.ids[i];
      ASSERT_EQ(source[i], id < 300 ? 0 : 1);
      const std::int64_t row = id < 300 ? id : id - 300;
      ASSERT_EQ(number[i], static_cast<float>(id < 300 ? row : 1000 + row));
      std::string text;
      for (std::int32_t at = ends[i]; at < ends[i + 1]; ++at)
        text += static_cast<char>(letters[static_cast<std::size_t>(at)]);
      ASSERT_EQ(text, WordsDataset::text_of_row(row));
      ids[source[i]].insert(id);
    }
  }
  EXPECT_EQ(ids[0].size(), 180u) << "each once";
  EXPECT_EQ(ids[1].size(), 90u) << "all of it";
}

TEST_P(MixedSources, TiersAndWorkersChangeNoByte) {
  weights_ = {1, 3};
  exhausted_ = Exhausted::repeat;
  for (bool shuffle : {true, false}) {
    options_.shuffle = shuffle;
    EXPECT_EQ(batches(), as_in_memory());
  }
  options_.shuffle = true;
  options_.pages = {.page = 8, .window = 3};
  EXPECT_EQ(batches(), as_in_memory()) << "in pages";
}

TEST_P(MixedSources, ItGoesOnAtEveryBatchAndOnAnyNumberOfRanks) {
  exhausted_ = Exhausted::repeat;
  auto set = prepare();
  const std::vector<SeenBatch> all = seen_batches(set, options_, *device_);
  const std::int64_t epoch = steps_per_epoch(order_of(options_, *set));
  EXPECT_EQ(epoch, 19) << "600 rows";
  for (std::int64_t step = 0; step < 30; ++step) {
    LoaderOptions rest = options_;
    rest.start = {.epoch = step / epoch, .step = step % epoch};
    rest.batches = 1;
    const auto seen = seen_batches(set, rest, *device_);
    ASSERT_EQ(seen[0], all[static_cast<std::size_t>(step)]) << step;
  }
  for (int world : {2, 3}) {
    std::vector<std::vector<SampleId>> together(30);
    std::vector<std::string> numbers(30), strips(30);
    for (int rank = 0; rank < world; ++rank) {
      LoaderOptions part = options_;
      part.rank = {.rank = rank, .world = world};
      const auto seen = seen_batches(set, part, *device_);
      for (std::size_t b = 0; b < seen.size(); ++b) {
        std::ranges::copy(seen[b].ids, std::back_inserter(together[b]));
        numbers[b] += seen[b].bytes.at("number") + "";
        strips[b] += seen[b].bytes.at("strip");
      }
    }
    for (std::size_t b = 0; b < together.size(); ++b) {
      EXPECT_EQ(together[b], all[b].ids);
      EXPECT_EQ(numbers[b], all[b].bytes.at("number"));
      EXPECT_EQ(strips[b], all[b].bytes.at("strip")) << "drawn the same";
    }
  }
}

TEST_P(MixedSources, WhatIsDrawnOfARowIsNotThatOfTheSameRowElsewhere) {
  words_[1] = words_[0];  // the same rows twice
  options_.batches = 20;
  std::map<std::int64_t, std::set<std::string>> strips;
  for (const SeenBatch& batch : batches()) {
    const std::string& bytes = batch.bytes.at("strip");
    const std::size_t each = bytes.size() / batch.ids.size();
    for (std::size_t i = 0; i < batch.ids.size(); ++i)
      if (batch.ids[i] >= 0)
        strips[batch.ids[i] % 300].insert(bytes.substr(i * each, each));
  }
  const auto several = std::ranges::count_if(
      strips, [](const auto& of) { return of.second.size() > 1; });
  EXPECT_GT(several, 100);
}

TEST_P(MixedSources, ValidationTakesEachRowOfEachSourceOnce) {
  words_[0].options.split = {.train = 0.5, .val = 0.5};
  words_[1].options.split = {.train = 0.9, .val = 0.1};
  auto set = prepare();
  options_.side = Side::val;
  options_.shuffle = false;
  options_.tail = Tail::exact;
  options_.batches = steps_per_epoch(order_of(options_, *set));
  std::vector<SampleId> ids;
  for (const SeenBatch& batch : seen_batches(set, options_, *device_))
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  EXPECT_EQ(std::ssize(ids), set->rows_on(Side::val));
  EXPECT_TRUE(std::ranges::is_sorted(ids)) << "one source after the other";
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
  EXPECT_LT(std::ranges::count_if(ids, [](SampleId id) { return id >= 300; }),
            25);
}

TEST_P(MixedSources, FieldsOfTheSameSettingsAreFittedOverAllSources) {
  use_fields(R"({"number": {"columns": ["number"], "standardize": true,
                            "missing": "mean"},
                 "kind": {"category": {"column": "strip"}},
                 "middle": {"columns": ["number"], "missing": "median"}})");
  words_[1].table.rows[5][3] = FakeCell();
  words_[1].table.rows[7][2] = std::string("only here");
  auto set = prepare();
  const Json statistics = set->statistics();
  EXPECT_EQ(statistics.find("sources"), nullptr);
  double sum = 0;
  for (int i = 0; i < 300; ++i) sum += i;
  for (int i = 0; i < 90; ++i) sum += i == 5 ? 0 : 1000 + i;
  const Json& number = *statistics.find("number")->find("number");
  EXPECT_DOUBLE_EQ(number.find("mean")->number(), sum / 389);
  EXPECT_EQ(number.find("count")->integer(), 389);
  EXPECT_EQ(number.find("missing")->integer(), 1);
  EXPECT_EQ(statistics.find("middle")->find("number")->find("fill")->number(),
            194.);
  EXPECT_THAT(statistics.find("kind")->find("classes")->dump(),
              HasSubstr("only here"));
  EXPECT_EQ(seen_batches(set, options_, *device_), as_in_memory());
}

TEST_P(MixedSources, FieldsOfTheirOwnSettingsAreFittedOverTheirSource) {
  use_fields(R"({"number": {"columns": ["number"], "standardize": true}})");
  words_[1].options.fields = fields_of(
      R"({"number": {"columns": ["number"], "standardize": true,
                     "clip": [0, 1e6]}})");
  const Json statistics = prepare()->statistics();
  EXPECT_EQ(statistics.find("number"), nullptr);
  const Json::Array& sources = statistics.find("sources")->array();
  ASSERT_EQ(sources.size(), 2u);
  auto mean = [&](std::size_t source) {
    return sources[source]
        .find("number")
        ->find("number")
        ->find("mean")
        ->number();
  };
  EXPECT_DOUBLE_EQ(mean(0), 149.5);
  EXPECT_DOUBLE_EQ(mean(1), 1044.5);
  EXPECT_EQ(batches(), as_in_memory());
}

TEST_P(MixedSources, ASecondRunTakesWhatTheFirstOneKept) {
  use_fields(R"({"number": {"columns": ["number"], "standardize": true}})");
  const std::vector<SeenBatch> first = batches();
  EXPECT_EQ(batches(), first);
  if (std::string(GetParam().cache) != "disk") return;
  auto stores = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(dir_))
      if (file.path().extension() == ".store") found.push_back(file.path());
    return found;
  };
  ASSERT_EQ(stores().size(), 2u);
  std::filesystem::remove(stores()[0]);
  EXPECT_EQ(batches(), first) << "the other one knows the statistics of both";
  ASSERT_EQ(stores().size(), 2u);
  words_[1].table.version = "2";
  words_[1].table.rows[3][3] = 1e6;
  EXPECT_NE(batches(), first);
  EXPECT_EQ(stores().size(), 4u) << "both are fitted anew";
}

TEST_P(MixedSources, ASampleIsNamedByItsSourceAndItsKey) {
  auto set = prepare();
  EXPECT_EQ(set->key_of(7), Json("0:7"));
  EXPECT_EQ(set->key_of(300), Json("1:0"));
  EXPECT_EQ(set->key_of(389), Json("1:89"));
}

TEST_P(MixedSources, TheFingerprintIsThatOfAllSourcesAndTheirMixture) {
  std::set<std::string> seen{prepare()->fingerprint()};
  EXPECT_FALSE(seen.insert(prepare()->fingerprint()).second) << "the same rows";
  auto changed = [&] { return seen.insert(prepare()->fingerprint()).second; };
  weights_ = {2, 1};
  EXPECT_TRUE(changed());
  exhausted_ = Exhausted::repeat;
  EXPECT_TRUE(changed());
  words_[1].table.version = "2";
  words_[1].table.rows[3][3] = 1e6;
  EXPECT_TRUE(changed());
  words_[0].options.split = {.train = 0.9, .val = 0.1};
  EXPECT_TRUE(changed());
  std::swap(words_[0], words_[1]);
  EXPECT_TRUE(changed());
}

TEST_P(MixedSources, SourcesThatMakeOtherTensorsAreRefused) {
  words_[1].options.fields = fields_of(
      R"({"number": {"columns": ["number"], "dtype": "float64"},
          "text": {"columns": ["number"]}, "strip": {"columns": ["number"]}})");
  EXPECT_EQ(refused().parts().code, "mixing.tensors");
  EXPECT_THAT(refused().what(),
              AllOf(HasSubstr("sources[1]"), HasSubstr("float64 [1]"),
                    HasSubstr("float32 [1]")));
  words_[1].options.fields.pop_back();
  EXPECT_EQ(refused().parts().code, "mixing.fields");
  EXPECT_THAT(refused().what(), HasSubstr("'number', 'text', 'strip'"));
  use_fields(R"({"source": {"columns": ["number"]}})");
  EXPECT_EQ(refused().parts().code, "mixing.tensors");
  EXPECT_THAT(refused().what(), HasSubstr("give the field another name"));
}

TEST_P(MixedSources, ASourceWithoutATrainRowIsRefused) {
  words_[1].options.split = {.train = 0, .val = 1};
  EXPECT_EQ(refused().parts().code, "mixing.empty");
  EXPECT_THAT(refused().what(), HasSubstr("sources[1]"));
}

TEST_P(MixedSources, ClassesThatMeanSomethingElseElsewhereAreRefused) {
  use_fields(R"({"kind": {"category": {"column": "text"}}})");
  words_[1].options.fields =
      fields_of(R"({"kind": {"category": {"column": "strip"}}})");
  EXPECT_EQ(refused().parts().code, "mixing.classes");
  EXPECT_THAT(refused().what(), HasSubstr("field 'kind'"));
}

TEST_P(MixedSources, AColumnThatIsTextHereAndANumberThereHasNoCommonClasses) {
  use_fields(R"({"kind": {"category": {"column": "strip"}}})");
  words_[1].table.schema.columns[2].declared = "int64";
  for (auto& row : words_[1].table.rows) row[2] = std::int64_t{3};
  EXPECT_EQ(refused().parts().code, "fields.category");
  EXPECT_THAT(refused().what(),
              AllOf(HasSubstr("'strip'"), HasSubstr("texts in one source")));
}

TEST_P(MixedSources, RowsThatADeviceShouldKeepAreRefused) {
  for (WordsDataset& words : words_) words.options.cache = "device";
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<MixedSourceOptions> options;
  for (const WordsDataset& words : words_) {
    options.push_back({.rows = words.options});
    sources.push_back(
        std::make_unique<FakeSource>(words.table, requests_of(words.options)));
  }
  auto sim = open_for_test("sim");
  try {
    prepare_mixed(std::move(options), std::move(sources), exhausted_, *sim);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "mixing.cache");
  }
}

TEST_P(MixedSources, ABadRowOfOneSourceNamesIt) {
  words_[1].table.rows[4][1] = std::string("bad!");
  const Error error = refused();
  EXPECT_EQ(error.parts().code, "data.bad_rows");
  EXPECT_THAT(error.what(), HasSubstr("row 4"));
  words_[1].options.source.skip_bad = true;
  EXPECT_EQ(prepare()->rows(), 389);
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, MixedSources,
    testing::Values(TierCase{"cpu", "ram", 0}, TierCase{"cpu", "ram", 1},
                    TierCase{"cpu", "ram", 2}, TierCase{"cpu", "ram", 8},
                    TierCase{"cpu", "none", 0}, TierCase{"cpu", "none", 2},
                    TierCase{"cpu", "disk", 2}, TierCase{"sim", "ram", 2},
                    TierCase{"sim", "auto", 2}, TierCase{"sim", "none", 8},
                    TierCase{"sim", "disk", 0}));

// A source by position, of which nothing is scanned, beside a table: rows that
// are read for each batch, some of which turn out to be bad.
class MixedWithAStore : public testing::TestWithParam<int> {
 protected:
  std::shared_ptr<const Dataset> prepare(Device& device) {
    FakeStoreTrouble trouble;
    trouble.spoil = [this](Block& block) {
      if (!spoil_) return;
      for (std::int64_t row = 0; row < block.rows; ++row)
        if (block.columns[0].as_float64(row) == 77.0)
          block.problems.push_back({.row = row, .column = 0, .why = "rotten"});
    };
    words_.table.schema.columns[3].name = "value";
    words_.options.fields = fields_of(R"({"value": {"columns": ["value"]}})");
    std::vector<MixedSourceOptions> options(2);
    for (MixedSourceOptions& one : options) {
      one.rows.fields = words_.options.fields;
      one.rows.cache = "none";
    }
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(
        counting_store(500, requests_of(options[0].rows.fields), trouble));
    sources.push_back(std::make_unique<FakeSource>(
        words_.table, requests_of(options[1].rows)));
    return prepare_mixed(std::move(options), std::move(sources),
                         Exhausted::repeat, device);
  }

  bool spoil_ = false;
  WordsDataset words_{100};
};

TEST_P(MixedWithAStore, RowsAreReadAheadOfEachSource) {
  auto cpu = open_for_test("cpu");
  LoaderOptions options{.seed = 3,
                        .batch_size = 50,
                        .workers = GetParam(),
                        .prefetch = 4,
                        .readers = 3,
                        .batches = 40};
  auto set = prepare(*cpu);
  EXPECT_GT(set->facts().most_readers, 0);
  const auto seen = seen_batches(set, options, *cpu);
  options.workers = options.readers = 0;
  EXPECT_EQ(seen, seen_batches(set, options, *cpu));
  for (const SeenBatch& batch : seen) {
    const auto values = batch.numbers<float>("value");
    for (std::size_t i = 0; i < batch.ids.size(); ++i)
      ASSERT_EQ(values[i],
                static_cast<float>(batch.ids[i] < 500 ? batch.ids[i]
                                                      : batch.ids[i] - 500));
  }
}

TEST_P(MixedWithAStore, ABadSampleIsMaskedOrSubstitutedInItsPlace) {
  spoil_ = true;
  auto cpu = open_for_test("cpu");
  LoaderOptions options{.seed = 3,
                        .tail = Tail::exact,
                        .batch_size = 50,
                        .workers = GetParam(),
                        .on_bad = OnBad::mask,
                        .batches = 20};
  auto set = prepare(*cpu);
  int masked = 0;
  for (const SeenBatch& batch : seen_batches(set, options, *cpu))
    for (std::size_t i = 0; i < batch.ids.size(); ++i)
      if (batch.ids[i] == 77) {
        EXPECT_EQ(batch.numbers<float>("value")[i], 0);
        EXPECT_EQ(batch.numbers<float>("weight")[i], 0);
        EXPECT_THAT(batch.rejected, ElementsAre(static_cast<std::int64_t>(i)));
        ++masked;
      }
  EXPECT_EQ(masked, 1);
  options.on_bad = OnBad::substitute;
  const auto seen = seen_batches(set, options, *cpu);
  options.workers = 0;
  EXPECT_EQ(seen, seen_batches(set, options, *cpu));
}

INSTANTIATE_TEST_SUITE_P(Workers, MixedWithAStore, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
