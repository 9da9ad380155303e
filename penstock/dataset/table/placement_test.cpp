#include "penstock/dataset/table/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace penstock {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::int64_t kRows = 1 << 18;  // of 8 bytes: 2 MiB

std::vector<Field> fields_of(const std::string& json) {
  return parse_fields(Json::parse(json, "test"), "fields");
}

/// What there is to decide from; as it is, rows of equal size beside a device
/// with memory of its own, and room for them everywhere but on a disk.
struct Rows {
  TableDatasetOptions asked{
      {.fields = fields_of(R"({"x": {"columns": ["value"]}})")}};
  MeasuredRows measured{.rows = kRows, .on_side = {kRows, 0}};
  Room room{.limits = {.ram_free = 64 * kMiB, .device_free = 64 * kMiB},
            .memory = MemoryKind::sim};

  /// Pictures, whose files differ in length.
  void are_pictures() {
    asked.fields = fields_of(R"({"x": {"image": {"column": "i", "size": 8}}})");
    measured = {.rows = 64,
                .on_side = {64, 0},
                .longest = {{0, 4096}},
                .run_bytes = 64 * 2048,
                .larger_bytes = kMiB,
                .finishing_bytes = 32768};
    room.memory = MemoryKind::cpu;
    room.limits.device_is_host = true;
  }
  Placement placed() const { return place(asked, measured, room); }
};

struct Case {
  const char* name;
  std::function<void(Rows& rows)> change;
  std::vector<TierRows> places;
  const char* why;  ///< of the slowest tier that holds rows
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Place : public testing::TestWithParam<Case> {};

TEST_P(Place, PutsRowsWhereTheyFitAndSaysWhy) {
  Rows rows;
  GetParam().change(rows);
  const TierPlan plan = rows.placed().plan;
  EXPECT_EQ(plan.places, GetParam().places);
  const auto line =
      std::ranges::find(plan.lines, plan.tier, &TierPlan::Line::tier);
  ASSERT_NE(line, plan.lines.end());
  EXPECT_THAT(line->why, HasSubstr(GetParam().why));
}

using enum Tier;
// clang-format off
const Case kCases[] = {
    {"AsItIs", [](Rows&) {}, {{device, kRows}}, "fits"},
    {"TheDeviceIsTheHost", [](Rows& r) { r.room.memory = MemoryKind::cpu; r.room.limits.device_is_host = true; }, {{ram, kRows}}, "fits"},
    {"ChangedOnTheHost", [](Rows& r) { r.asked.batches_on_host = true; }, {{ram, kRows}}, "fits"},
    {"Asked", [](Rows& r) { r.asked.cache = "none"; }, {{none, kRows}}, "fits"},
    {"NoRoomOnTheDevice", [](Rows& r) { r.room.limits.device_free = 0; }, {{pinned, kRows}}, "fits"},
    {"ABudgetOfTheDevice", [](Rows& r) { r.asked.budgets.device = kMiB / 4; }, {{device, kRows / 8}, {pinned, kRows - kRows / 8}}, "holds 229376 of 262144 rows"},
    {"OnDiskAlready", [](Rows& r) { r.measured.in_store = true; r.room.limits = {.disk_free = 0, .ram_free = kMiB / 2, .device_free = 0}; }, {{disk, kRows}}, "fits"},
    {"RunsAreNotDivided", [](Rows& r) { r.are_pictures(); r.room.limits.ram_free = kMiB / 8; }, {{none, 64}}, "fits"},
    {"Pictures", [](Rows& r) { r.are_pictures(); }, {{ram, 64}}, "fits"},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Cases, Place, testing::ValuesIn(kCases),
                         [](const auto& row) { return row.param.name; });

TEST(Placement, ADeviceThatKeepsTheRowsIsCopiedNone) {
  Rows rows;
  rows.asked.fields = fields_of(
      R"({"x": {"image": {"column": "i", "size": 8,
                          "store": {"form": "decoded", "max_side": 8},
                          "finish": "device"}}})");
  rows.measured.longest = {{0, 192}};
  rows.measured.run_bytes = 192 * 64;
  rows.measured.rows = 64;
  const auto copied_to = [&](const char* cache) {
    rows.asked.cache = cache;
    const Placement placed = rows.placed();
    EXPECT_FALSE(placed.device_fields[0].empty());
    return placed.device_fields[0].at(0).longest_run;
  };
  EXPECT_EQ(copied_to("device"), 0);
  EXPECT_EQ(copied_to("ram"), 192);
}

TEST(Placement, OfAPartOnTheDeviceTheOthersAreCopiedWhole) {
  Rows rows;
  rows.asked.budgets = {.device = kMiB / 2, .pinned = 0};
  const Placement placed = rows.placed();
  ASSERT_TRUE(placed.plan.mixed());
  EXPECT_EQ(placed.device_fields[0].back().field, kStoredRows);
  EXPECT_EQ(placed.device_fields[0].back().element_bytes, 8U);
}

TEST(Placement, TheLargerFormIsKeptWhereThereIsRoom) {
  Rows rows;
  rows.are_pictures();
  rows.asked.epochs = 9;
  const Placement kept = rows.placed();
  ASSERT_TRUE(kept.larger.keeping);
  EXPECT_THAT(kept.plan.notes,
              Contains(HasSubstr("which fits in memory: it is kept")));
  rows.asked.cache = "ram";  // nothing else
  const Placement asked = rows.placed();
  EXPECT_FALSE(asked.larger.keeping);
  EXPECT_THAT(asked.plan.notes, Not(Contains(HasSubstr("it is kept"))));
}

TEST(Placement, RowsThatAreReadByPositionStayInTheirSource) {
  Rows rows;
  rows.are_pictures();
  rows.asked.epochs = 9;
  rows.measured.read_bytes = rows.measured.run_bytes;
  const auto bytes_of = [](const TierPlan& plan, Tier tier) {
    return std::ranges::find(plan.lines, tier, &TierPlan::Line::tier)
        ->host_bytes;
  };
  const Placement kept = rows.placed();
  EXPECT_EQ(kept.plan.tier, Tier::none);
  EXPECT_GT(bytes_of(kept.plan, Tier::ram), rows.measured.run_bytes);
  ASSERT_TRUE(kept.larger.keeping);
  EXPECT_EQ(kept.larger.bytes, kMiB);
  EXPECT_THAT(kept.plan.notes, Contains(kept.larger.note));
  rows.asked.cache = "none";
  const Placement read = rows.placed();
  EXPECT_FALSE(read.larger.keeping);
  EXPECT_EQ(bytes_of(kept.plan, Tier::none),
            bytes_of(read.plan, Tier::none) + kMiB);
}

TEST(Placement, ADeviceDoesNotFinishFilesOfUnknownLength) {
  Rows rows;
  rows.are_pictures();
  rows.asked.fields = fields_of(
      R"({"x": {"image": {"column": "i", "size": 8, "dtype": "float32",
                          "record_draws": false, "decode": "device"}}})");
  rows.room.memory = MemoryKind::sim;
  rows.measured.read_bytes = rows.measured.run_bytes;
  EXPECT_THAT(rows.placed().plan.notes,
              Contains(HasSubstr("host: the size of rows that are read by "
                                 "position is not known")));
}

TEST(Placement, SaysWhatThreadsAndRanksTake) {
  Rows rows;
  rows.are_pictures();
  rows.asked.workers = 2;
  rows.asked.ranks = 4;
  rows.asked.ranks_here = 4;
  const TierPlan plan = rows.placed().plan;
  EXPECT_THAT(plan.notes, Contains(HasSubstr("64.0 KiB of host memory are "
                                             "reserved for 2 threads")));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("4 ranks; 4 of them")));
}

TEST(Placement, TheLongestSampleOfABinIsTheBin) {
  const auto longest = [](const std::string& more) {
    return longest_samples(
        fields_of(R"({"t": {"tokens": {"column": "ids")" + more + "}}}"),
        {{0, 7}});
  };
  const std::string most = R"(, "max_length": 40, "vocab_size": 50, "pack": )";
  EXPECT_EQ(longest(most + R"("none")"), std::vector<std::int32_t>{7});
  EXPECT_EQ(longest(most + R"("wrapped")"), std::vector<std::int32_t>{40});
}

}  // namespace
}  // namespace penstock
