// Rows that are prepared while batches are made, as a training loop sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kRows = 700;

std::vector<std::int64_t> tokens_of(std::int64_t i) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t t = 0; t < i * 37 % 61; ++t)
    tokens.push_back((i * 7 + t) % 5000);
  return tokens;
}

/// Document i as JSON; `bad` ones are not JSON.
Block documents(const std::vector<std::int64_t>& bad) {
  Block block;
  block.rows = kRows;
  block.columns.push_back({.type = ColumnType::text});
  block.columns.push_back({.type = ColumnType::float64});
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::string text = "[";
    for (std::int64_t token : tokens_of(row))
      text += (text.size() > 1 ? ", " : "") + std::to_string(token);
    const bool spoilt = std::ranges::find(bad, row) != bad.end();
    block.columns[0].append_text(spoilt ? "none" : text + "]");
    block.columns[1].append_float64(static_cast<double>(row));
  }
  for (Column& column : block.columns) column.length = kRows;
  return block;
}

struct Case {
  const char* pack;
  int workers;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.pack << " " << c.workers << " workers";
}

class GrowingTest : public testing::TestWithParam<Case> {
 protected:
  GrowingTest() {
    std::filesystem::remove_all(folder_);
    set_field(GetParam().pack);
    options_.preparing = Preparing::meanwhile;
    options_.source.version = "1";
    options_.store_dir = folder_;
    options_.workers = GetParam().workers;
    options_.cache = "disk";
    loading_ = {.tail = Tail::exact,
                .batch_size = 8,
                .workers = GetParam().workers,
                .batches = 40};
  }
  ~GrowingTest() override { std::filesystem::remove_all(folder_); }

  void set_field(const std::string& pack, const std::string& others = "") {
    options_.fields = parse_fields(
        Json::parse(
            R"({"tokens": {"tokens": {"column": "ids", "vocab_size": 5000,
                "pad_id": 3, "max_length": )" +
                std::to_string(length_) + ", " + pack + "}}" + others + "}",
            "test"),
        "fields");
  }
  std::unique_ptr<FakeStore> source() {
    return std::make_unique<FakeStore>(
        std::vector<std::string>{"ids", "number"}, documents(bad_),
        requests_of(options_), trouble_);
  }
  /// Without `beside`, and without a store, all rows are prepared first.
  std::shared_ptr<const Dataset> prepare(bool beside = true) {
    options_.open = nullptr;
    if (beside)
      options_.open = [this](StopFlag) -> std::unique_ptr<Source> {
        if (holds_) end_if_stopped(&always_);
        return source();
      };
    return prepare_dataset(options_, source(), *device_);
  }
  std::vector<SeenBatch> run(const std::shared_ptr<const Dataset>& set) {
    return seen_batches(set, loading_, *device_);
  }
  static const LaterRows& later(const Dataset& set) {
    if (set.facts().later == nullptr)
      throw std::runtime_error("the rows are there");
    return *set.facts().later;
  }
  std::vector<std::string> stores() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(folder_, none))
      if (file.path().string().ends_with(".store"))
        names.push_back(file.path().filename());
    return names;
  }
  std::string refused(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.parts().code + ": " + error.what();
    }
    return "nothing was refused";
  }

  const std::string folder_ =
      testing::TempDir() + "penstock-growing-" + std::to_string(::getpid());
  int length_ = 40;
  const std::atomic<bool> always_{true};
  bool holds_ = false;  // the scan beside the batches ends before it begins
  std::vector<std::int64_t> bad_;
  FakeStoreTrouble trouble_{.tells_lengths = false};
  std::unique_ptr<Device> device_ = open_device({.kind = "cpu"});
  TableDatasetOptions options_;
  LoaderOptions loading_;
};

TEST_P(GrowingTest, BatchesAreThoseOfRowsThatWerePreparedFirst) {
  holds_ = true;
  const auto grown = prepare();
  EXPECT_EQ(later(*grown).rows(), nullptr);
  const std::vector<SeenBatch> now = run(grown);
  EXPECT_EQ(later(*grown).rows(), nullptr) << "there is no store";
  const auto first = prepare(false);
  EXPECT_EQ(first->facts().later, nullptr);
  EXPECT_EQ(run(first), now);
  EXPECT_EQ(first->fingerprint(), grown->fingerprint());
  EXPECT_EQ(now.size(), 40u);
}

TEST_P(GrowingTest, WorkersChangeNothing) {
  const std::vector<SeenBatch> seen = run(prepare());
  std::filesystem::remove_all(folder_);
  loading_.workers = options_.workers = 0;
  EXPECT_EQ(run(prepare()), seen);
}

TEST_P(GrowingTest, GoesOnInTheMiddleOfTheFirstEpoch) {
  const std::vector<SeenBatch> all = run(prepare());
  for (std::int64_t at : {1, 11, 25}) {
    for (bool store : {true, false}) {
      if (!store) std::filesystem::remove_all(folder_);
      loading_.start = {.epoch = 0, .step = at};
      loading_.batches = 4;
      const std::vector<SeenBatch> later = run(prepare());
      for (std::size_t i = 0; i < later.size(); ++i)
        EXPECT_EQ(later[i], all[static_cast<std::size_t>(at) + i]);
    }
  }
}

TEST_P(GrowingTest, TheStoreIsReadOnceItIsCompleteAndByTheNextRun) {
  const auto set = prepare();
  loading_.batches = 5;
  const std::vector<SeenBatch> before = run(set);
  later(*set).wait({});
  ASSERT_NE(later(*set).rows(), nullptr);
  ASSERT_EQ(stores().size(), 1u);
  EXPECT_EQ(run(set), before);
  EXPECT_EQ(set->statistics().find("tokens")->find("documents")->integer(),
            kRows);
  trouble_.fail_at_read = 1;  // the source is not read any more
  const auto next = prepare();
  EXPECT_EQ(next->facts().later, nullptr);
  EXPECT_EQ(run(next), before);
  EXPECT_EQ(next->fingerprint(), set->fingerprint());
}

TEST_P(GrowingTest, APreparationBeforehandMakesTheSameStore) {
  prepare(false);
  const std::vector<std::string> made = stores();
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(prepare()->facts().later, nullptr);
  length_ = 50;
  set_field(GetParam().pack);
  const bool stream =
      std::string(GetParam().pack).find("stream") != std::string::npos;
  EXPECT_EQ(prepare()->facts().later == nullptr, stream)
      << "how rows are packed is no part of it, but where they are cut";
}

TEST_P(GrowingTest, WithoutACacheEachEpochPreparesItsRows) {
  options_.cache = "none";
  const auto set = prepare();
  const std::vector<SeenBatch> seen = run(set);
  later(*set).wait({});
  EXPECT_THAT(stores(), IsEmpty());
  EXPECT_EQ(run(set), seen);
}

TEST_P(GrowingTest, RowsThatShallBeInMemoryAreInTheStoreForTheNextRun) {
  options_.cache = "ram";
  const auto set = prepare();
  later(*set).wait({});
  ASSERT_NE(later(*set).rows(), nullptr);
  EXPECT_EQ(stores().size(), 1U);
}

TEST_P(GrowingTest, ABadDocumentIsToldInItsTurn) {
  bad_ = {7, 123, 600};
  loading_.batches = 200;
  const auto set = prepare();
  EXPECT_THAT(refused([&] { run(set); }),
              testing::AllOf(HasSubstr("data.bad_sample"),
                             HasSubstr("expected a list of token ids")));
  later(*set).wait({});
  EXPECT_EQ(later(*set).rows(), nullptr) << "it would lack a row";
  EXPECT_THAT(stores(), IsEmpty());
}

TEST_P(GrowingTest, ABadDocumentThatIsMaskedIsPadding) {
  bad_ = {123};  // one in a thousand may be
  loading_.on_bad = OnBad::mask;
  loading_.batches = 60;
  const std::vector<SeenBatch> seen = run(prepare());
  std::map<SampleId, int> rejected;
  for (const SeenBatch& batch : seen) {
    const auto ids = batch.numbers<std::int64_t>("input_ids");
    const auto labels = batch.numbers<std::int64_t>("labels");
    const bool bins = batch.shapes.contains("cu_seqlens");
    const auto ends =
        batch.numbers<std::int32_t>(bins ? "cu_seqlens" : "input_ids_lengths");
    const auto width =
        static_cast<std::size_t>(batch.shapes.at("input_ids")[1]);
    for (std::int64_t range : batch.rejected) {
      const auto r = static_cast<std::size_t>(range);
      ++rejected[batch.ids[r]];
      EXPECT_EQ(bins ? ends[r + 1] - ends[r] : ends[r], 1);
      const std::size_t at =
          bins ? static_cast<std::size_t>(ends[r]) : r * width;
      EXPECT_EQ(ids[at], 3);
      EXPECT_EQ(labels[at], -100);
      if (!bins) {
        EXPECT_EQ(batch.numbers<float>("weight")[r], 0);
      }
    }
  }
  EXPECT_EQ(rejected.size(), 1u);
  EXPECT_GE(rejected[123], 1);
  loading_.workers = options_.workers = 0;
  EXPECT_EQ(run(prepare()), seen);
}

TEST_P(GrowingTest, AFailingReadIsHeardInItsBatchsTurn) {
  holds_ = true;
  const auto set = prepare();
  trouble_.fail_at_read = 2;
  loading_.batches = 200;
  options_.open = nullptr;
  const auto failing = prepare();
  EXPECT_THAT(refused([&] { run(failing); }), HasSubstr("fake.failed"));
}

TEST_P(GrowingTest, OneReaderAtATimeIsInsideALibraryWithOneLock) {
  holds_ = true;                // it has a source of its own, in a test
  trouble_.global_lock = true;  // fails otherwise
  EXPECT_EQ(run(prepare()).size(), 40u);
}

TEST_P(GrowingTest, TheHeldOutSideHasItsOwnDocuments) {
  options_.split = {.train = 0.7, .val = 0.3};
  const auto set = prepare();
  std::set<SampleId> train, val;
  for (const SeenBatch& batch : run(set))
    train.insert(batch.ids.begin(), batch.ids.end());
  loading_.side = Side::val;
  loading_.batches = steps_per_epoch(order_of(loading_, *set));
  for (const SeenBatch& batch : run(set))
    val.insert(batch.ids.begin(), batch.ids.end());
  EXPECT_GT(val.size(), 100u);
  for (SampleId id : val)
    if (id >= 0) {
      EXPECT_FALSE(train.contains(id));
    }
}

constexpr const char* kPadded = R"("pack": "none")";
constexpr const char* kStream = R"("pack": "stream", "pack_window": 100)";
INSTANTIATE_TEST_SUITE_P(All, GrowingTest,
                         testing::Values(Case{kPadded, 0}, Case{kPadded, 1},
                                         Case{kPadded, 2}, Case{kPadded, 8},
                                         Case{kStream, 0}, Case{kStream, 1},
                                         Case{kStream, 2}, Case{kStream, 8}));

class GrowingStream : public GrowingTest {};

TEST_P(GrowingStream, HasEveryDocumentOnceBeforeItHasOneAgain) {
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < kRows; ++i) tokens += std::ssize(tokens_of(i));
  loading_.batch_size = 1;
  loading_.batches = tokens;  // more than there can be
  Loader loader(prepare(), loading_, *device_);
  std::map<SampleId, std::int64_t> seen;
  while (tokens > 0) {
    const std::optional<Batch> batch = loader.next();
    batch->wait();
    const auto ends = std::span(
        reinterpret_cast<const std::int32_t*>(batch->tensors()[1].view.data),
        batch->ids().size() + 1);
    for (std::size_t d = 0; d < batch->ids().size(); ++d) {
      if (batch->ids()[d] < 0) continue;
      seen[batch->ids()[d]] += ends[d + 1] - ends[d];
      tokens -= ends[d + 1] - ends[d];
    }
  }
  EXPECT_EQ(tokens, 0);
  for (std::int64_t i = 0; i < kRows; ++i)
    EXPECT_EQ(seen[i], std::ssize(tokens_of(i))) << "document " << i;
}

TEST_P(GrowingStream, PreparesAWindowForTheFirstBatch) {
  holds_ = true;
  auto made = source();
  const FakeStoreCounts& counts = made->counts();
  options_.open = [this](StopFlag) -> std::unique_ptr<Source> {
    end_if_stopped(&always_);
    return nullptr;
  };
  const auto set = prepare_dataset(options_, std::move(made), *device_);
  EXPECT_EQ(counts.rows, 0);
  loading_.batches = 1;
  loading_.workers = 0;
  run(set);
  EXPECT_EQ(counts.rows, 100);
}

TEST_P(GrowingStream, RanksShareTheRowsOfABatch) {
  const std::vector<SeenBatch> all = run(prepare());
  std::vector<std::vector<SeenBatch>> of_rank;
  for (int rank : {0, 1}) {
    loading_.rank = {rank, 2};
    of_rank.push_back(run(prepare()));
  }
  for (std::size_t b = 0; b < all.size(); ++b)
    EXPECT_EQ(all[b].bytes.at("input_ids"),
              of_rank[0][b].bytes.at("input_ids") +
                  of_rank[1][b].bytes.at("input_ids"));
}

TEST_P(GrowingStream, IsPreparedMeanwhileUnlessTheJobSaysOtherwise) {
  options_.preparing = Preparing::automatic;
  EXPECT_NE(prepare()->facts().later, nullptr);
  options_.preparing = Preparing::before;
  EXPECT_EQ(prepare()->facts().later, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, GrowingStream,
                         testing::Values(Case{kStream, 0}, Case{kStream, 2}));

class GrowingRefusals : public GrowingTest {};

TEST_P(GrowingRefusals, SayWhatNeedsAllRowsBeforehand) {
  auto why = [&] { return refused([&] { prepare(); }); };
  set_field(R"("pack": "best_fit")");
  EXPECT_THAT(why(), testing::AllOf(HasSubstr("data.not_meanwhile"),
                                    HasSubstr("packs all samples together")));
  set_field(kPadded, R"(, "number": {"columns": ["number"],
                                     "standardize": true})");
  EXPECT_THAT(why(), HasSubstr("needs statistics of the data"));
  set_field(kPadded);
  options_.source.skip_bad = true;
  EXPECT_THAT(why(), HasSubstr("bad rows are left out before training"));
  options_.source.skip_bad = false;
  options_.split = {.train = 0.5, .val = 0.5, .by = "number"};
  EXPECT_THAT(why(), HasSubstr("the split is by a column"));
}

TEST_P(GrowingRefusals, FieldsOfEqualSizeStandBesideDocuments) {
  set_field(kPadded, R"(, "number": {"columns": ["number"]})");
  holds_ = true;
  for (const SeenBatch& batch : run(prepare())) {
    const auto numbers = batch.numbers<float>("number");
    for (std::size_t row = 0; row < batch.ids.size(); ++row)
      EXPECT_EQ(numbers[row], static_cast<float>(batch.ids[row]));
  }
}

TEST_P(GrowingRefusals, APlanReadsNothing) {
  options_.plan_only = true;
  trouble_.fail_at_read = 1;
  std::string line;
  options_.scanning = [&](const std::string& told) { line = told; };
  EXPECT_EQ(prepare()->rows(), kRows);
  EXPECT_THAT(line, HasSubstr("prepared while batches are produced"));
  EXPECT_THAT(stores(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, GrowingRefusals,
                         testing::Values(Case{kPadded, 1}));

}  // namespace
}  // namespace penstock
