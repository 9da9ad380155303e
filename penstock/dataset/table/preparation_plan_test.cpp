#include "penstock/dataset/table/preparation_plan.h"

#include <gtest/gtest.h>

#include <functional>

namespace penstock {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 21;  // values

/// What there is to decide from; by default, rows that nothing needs a scan of.
struct Asked {
  AskedRows rows{.fields = {{.name = "x"}}, .row_bytes = 4};
  SourceTraits source{.shown = "a source", .by_position = true, .rows = 50};
  MachineFacts machine;

  AskedField& field() { return rows.fields[0]; }
  /// Rows that lie in memory, so many that they are packed beside the batches.
  void lie_in_memory() {
    rows.opens_again = true;
    source.in_memory = true;
    source.rows = kMany;
    source.chunks = 1;
  }
  /// Documents that are packed in windows.
  void stream() {
    rows.opens_again = true;
    field() = {.name = "x", .varies = true, .packed = Packing::How::stream};
  }
};

struct Case {
  const char* name;
  std::function<void(Asked& asked)> change;
  RowsForm form;
  RowsIdentity identity;
  const char* reason;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

using enum RowsForm;
constexpr RowsIdentity kContents = RowsIdentity::contents;
constexpr RowsIdentity kSource = RowsIdentity::source;
constexpr RowsIdentity kStored = RowsIdentity::stored;
constexpr const char* kByPosition = "nothing requires a scan";
constexpr const char* kInMemory =
    "the source keeps them in memory, column by column";
constexpr const char* kStreams = "samples are packed in a stream";
constexpr const char* kMeanwhile = "\"loader.prepare\" is \"meanwhile\"";
constexpr const char* kOnce =
    "the rows cannot be read while batches are produced";
constexpr const char* kUnknownLengths =
    "the samples of field 'x' differ in length, and reading them is the only "
    "way to know their lengths";

// clang-format off
const Case kCases[] = {
    // Nothing needs a scan.
    {"AsItIs", [](Asked&) {}, by_position, kSource, kByPosition},
    {"NothingKept", [](Asked& a) { a.rows.cache = "none"; }, by_position, kSource, kByPosition},
    {"KnownLengths", [](Asked& a) { a.field().varies = a.field().lengths_known = true; }, by_position, kSource, kByPosition},
    {"PackedOfKnownLengths", [](Asked& a) { a.field() = {.name = "x", .varies = true, .lengths_known = true, .packed = Packing::How::wrapped}; }, by_position, kSource, kByPosition},
    // A scan finds something out.
    {"Keys", [](Asked& a) { a.source.by_key = true; }, scanned, kContents, "samples are numbered by their keys"},
    {"KeysAlone", [](Asked& a) { a.source = {.by_key = true}; }, scanned, kContents, "samples are numbered by their keys"},
    {"BadRows", [](Asked& a) { a.rows.skips_bad = true; }, scanned, kContents, "bad rows are left out before training"},
    {"Drawn", [](Asked& a) { a.rows.drawn = true; }, scanned, kContents, "rows are drawn by a column"},
    {"NoPositions", [](Asked& a) { a.source.by_position = false; }, scanned, kContents, "the source cannot be read by position"},
    {"NotCounted", [](Asked& a) { a.source.rows.reset(); }, scanned, kContents, "the source does not know how many rows it has"},
    {"SplitByColumn", [](Asked& a) { a.rows.split_by_column = true; }, scanned, kContents, "the split is by a column"},
    {"Fitted", [](Asked& a) { a.field().fitted = true; }, scanned, kContents, "field 'x' needs statistics of the data"},
    {"UnknownLengths", [](Asked& a) { a.field().varies = true; }, scanned, kContents, kUnknownLengths},
    {"LeavesOut", [](Asked& a) { a.field().may_leave_out = true; }, scanned, kContents, "field 'x' may leave rows out"},
    {"FindsOutThoughKept", [](Asked& a) { a.field().fitted = true; a.rows.cache = "ram"; }, scanned, kContents, "field 'x' needs statistics of the data"},
    // Rows are kept that could be read by position.
    {"KeptInRam", [](Asked& a) { a.rows.cache = "ram"; }, scanned, kSource, "the rows are kept in 'ram'"},
    {"KeptOnDisk", [](Asked& a) { a.rows.cache = "disk"; }, scanned, kSource, "the rows are kept in 'disk'"},
    {"Budgets", [](Asked& a) { a.rows.budgets = true; }, scanned, kSource, "'loader.cache' keeps the rows"},
    {"OfStore", [](Asked& a) { a.source.of_store = true; }, scanned, kSource, "the rows come from a store"},
    {"Chunks", [](Asked& a) { a.source.chunks = 3; a.source.decodes_chunks = true; }, scanned, kSource, "rows are stored in chunks, which are decoded once and kept"},
    {"ChunksUnkept", [](Asked& a) { a.source.decodes_chunks = true; a.rows.cache = "none"; }, by_position, kSource, kByPosition},
    {"ChunksThatCostNothing", [](Asked& a) { a.source.chunks = 3; }, by_position, kSource, kByPosition},
    // Beside the batches.
    {"InMemory", [](Asked& a) { a.lie_in_memory(); }, beside, kSource, kInMemory},
    {"InMemoryWithRoom", [](Asked& a) { a.lie_in_memory(); a.machine.memory_free = 16 * kMany + 1; }, beside, kSource, kInMemory},
    {"InMemoryWithoutRoom", [](Asked& a) { a.lie_in_memory(); a.machine.memory_free = 16 * kMany; }, by_position, kSource, kByPosition},
    {"InMemoryFew", [](Asked& a) { a.lie_in_memory(); a.source.rows = 1 << 20; }, by_position, kSource, kByPosition},
    {"InMemoryInManyChunks", [](Asked& a) { a.lie_in_memory(); a.source.chunks = 65; }, by_position, kSource, kByPosition},
    {"InMemoryOneByOne", [](Asked& a) { a.lie_in_memory(); a.source.chunks.reset(); }, by_position, kSource, kByPosition},
    {"InMemoryReadOnce", [](Asked& a) { a.lie_in_memory(); a.rows.opens_again = false; }, by_position, kSource, kByPosition},
    {"InMemoryBefore", [](Asked& a) { a.lie_in_memory(); a.rows.preparing = Preparing::before; }, by_position, kSource, kByPosition},
    {"InMemoryUnkept", [](Asked& a) { a.lie_in_memory(); a.rows.cache = "none"; }, by_position, kSource, kByPosition},
    {"InMemoryPlanned", [](Asked& a) { a.lie_in_memory(); a.rows.plan_only = true; }, by_position, kSource, kByPosition},
    {"InMemoryForADevice", [](Asked& a) { a.lie_in_memory(); a.machine.device_is_host = false; }, by_position, kSource, kByPosition},
    {"InMemoryWithBudgets", [](Asked& a) { a.lie_in_memory(); a.rows.budgets = true; }, scanned, kSource, "'loader.cache' keeps the rows"},
    {"InMemoryFitted", [](Asked& a) { a.lie_in_memory(); a.field().fitted = true; }, scanned, kContents, "field 'x' needs statistics of the data"},
    // While batches are made.
    {"Stream", [](Asked& a) { a.stream(); }, growing, kStored, kStreams},
    {"StreamOnDisk", [](Asked& a) { a.stream(); a.rows.cache = "disk"; }, growing, kStored, kStreams},
    {"StreamPlanned", [](Asked& a) { a.stream(); a.rows.plan_only = true; }, growing, kStored, kStreams},
    {"StreamInMemory", [](Asked& a) { a.stream(); a.source.in_memory = true; }, scanned, kStored, kOnce},
    {"StreamReadOnce", [](Asked& a) { a.stream(); a.rows.opens_again = false; }, scanned, kStored, kOnce},
    {"StreamBefore", [](Asked& a) { a.stream(); a.rows.preparing = Preparing::before; }, scanned, kContents, kUnknownLengths},
    {"StreamOfBadRows", [](Asked& a) { a.stream(); a.rows.skips_bad = true; }, scanned, kContents, "bad rows are left out before training"},
    {"StreamOfKeys", [](Asked& a) { a.stream(); a.source = {.by_key = true}; }, scanned, kContents, "samples are numbered by their keys"},
    {"Meanwhile", [](Asked& a) { a.rows.opens_again = true; a.rows.preparing = Preparing::meanwhile; }, growing, kStored, kMeanwhile},
    {"MeanwhileOfUnknownLengths", [](Asked& a) { a.rows.opens_again = true; a.rows.preparing = Preparing::meanwhile; a.field().varies = true; }, growing, kStored, kMeanwhile},
};
// clang-format on

class PreparationPlanTest : public testing::TestWithParam<Case> {};

TEST_P(PreparationPlanTest, FollowsFromWhatIsAskedAndFromTheSource) {
  const Case& of = GetParam();
  for (bool stores : {true, false}) {
    Asked asked;
    of.change(asked);
    asked.rows.stores = stores;
    const PreparationPlan plan =
        decide(asked.rows, asked.source, asked.machine);
    EXPECT_EQ(plan.form, of.form);
    EXPECT_EQ(plan.identity, of.identity);
    EXPECT_EQ(plan.reason, of.reason);
    EXPECT_EQ(plan.uses_store, stores);
  }
}
INSTANTIATE_TEST_SUITE_P(Decisions, PreparationPlanTest,
                         testing::ValuesIn(kCases),
                         [](const auto& made) { return made.param.name; });

TEST(PreparationPlan, IsToldInWords) {
  const PreparationPlan plan{.form = by_position, .reason = "a reason"};
  EXPECT_EQ(plan.json().dump(),
            R"({"form": "by_position", "reason": "a reason"})");
  EXPECT_EQ(preparation_text("growing", "a reason"),
            "the rows are prepared while batches are produced: a reason");
  EXPECT_EQ(preparation_text("of a newer version", "a reason"),
            "of a newer version: a reason");
  for (RowsForm form : {scanned, by_position, beside, growing})
    EXPECT_EQ(preparation_text(name_of(form), "").find("the rows are "), 0U);
}

/// Why rows cannot be prepared while batches are made.
struct Refused {
  const char* name;
  std::function<void(Asked& asked)> change;
  const char* why;
};
void PrintTo(const Refused& c, std::ostream* out) { *out << c.name; }

// clang-format off
const Refused kRefused[] = {
    {"NoPositions", [](Asked& a) { a.source.by_position = false; }, "the source cannot be read by position"},
    {"NotCounted", [](Asked& a) { a.source.rows.reset(); }, "the source does not know how many rows it has"},
    {"SplitByColumn", [](Asked& a) { a.rows.split_by_column = true; }, "the split is by a column"},
    {"Fitted", [](Asked& a) { a.field().fitted = true; a.rows.skips_bad = true; }, "field 'x' needs statistics of the data"},
    {"BadRows", [](Asked& a) { a.rows.skips_bad = true; a.field().may_leave_out = true; }, "bad rows are left out before training"},
    {"Drawn", [](Asked& a) { a.rows.drawn = true; }, "rows are drawn by a column"},
    {"LeavesOut", [](Asked& a) { a.field().may_leave_out = true; }, "field 'x' may leave rows out"},
    {"PacksAll", [](Asked& a) { a.field().packed = Packing::How::wrapped; }, "field 'x' packs all samples together, which needs their lengths; \"pack\": \"stream\" packs in windows instead"},
    {"AnyLength", [](Asked& a) { a.field().most_known = false; }, "the greatest length of the samples of field 'x' is unknown"},
};
// clang-format on

class NotMeanwhile : public testing::TestWithParam<Refused> {};

TEST_P(NotMeanwhile, IsSaidWhereItIsAsked) {
  Asked asked;
  asked.rows.preparing = Preparing::meanwhile;
  GetParam().change(asked);
  try {
    decide(asked.rows, asked.source, asked.machine);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "data.not_meanwhile");
    EXPECT_EQ(error.parts().where, "loader.prepare = \"meanwhile\", a source");
    EXPECT_EQ(error.parts().why, GetParam().why);
  }
}
INSTANTIATE_TEST_SUITE_P(Reasons, NotMeanwhile, testing::ValuesIn(kRefused),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace penstock
