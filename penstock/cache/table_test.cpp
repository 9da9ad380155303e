#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/cache/cache.h"
#include "tests/conformance/tier_suite.h"

namespace penstock {
namespace {

struct Case {
  const char* device;
  Tier tier;
};

class TableTest : public testing::TestWithParam<Case> {
 protected:
  static DeviceSpec spec() {
    DeviceSpec spec;
    spec.kind = GetParam().device;
    spec.virtual_time = spec.kind == std::string("sim");
    return spec;
  }
  std::unique_ptr<Device> device_ = open_device(spec());
};

TEST_P(TableTest, ItsRowsCanBeBroughtIntoAnotherOrderOnTheHost) {
  constexpr std::int64_t kRows = 1000;
  Table table(GetParam().tier, kRows, 24, *device_);
  if (!table.on_host()) return;
  std::byte* out = table.append(kRows);
  for (std::int64_t at = 0; at < kRows; ++at)
    std::memcpy(out + 24 * at + 8, &at, sizeof(at));
  auto place = [](std::int64_t id) {  // rows that stay, pairs, long cycles
    return id < 10 ? id : id < 20 ? 29 - id : 20 + (id - 20) * 11 % 980;
  };
  table.reorder(place);
  table.seal();
  for (std::int64_t id = 0; id < kRows; ++id) {
    std::int64_t found;
    std::memcpy(&found, table.data() + 24 * id + 8, sizeof(found));
    ASSERT_EQ(found, place(id)) << id;
  }
}

// Eight pieces of staging memory, each of which takes 4 ms to be packed and 4
// ms to be copied, in virtual time.
TEST(TableOnADevice, IsPackedWhileTheRowsBeforeAreCopied) {
  constexpr std::int64_t kPieces = 8;
  constexpr std::size_t kRowBytes = 4096;
  constexpr std::int64_t kRows = Staging::kPieceBytes / kRowBytes;
  std::unique_ptr<Device> sim =
      open_device({.kind = "sim",
                   .copy_gb_s = static_cast<double>(Staging::kPieceBytes) / 4e6,
                   .virtual_time = true});
  Clock& clock = sim->clock();
  Table table(Tier::device, kPieces * kRows, kRowBytes, *sim);
  for (std::int64_t piece = 0; piece < kPieces; ++piece) {
    ASSERT_EQ(table.most_rows(), kRows);
    std::byte* rows = table.append(kRows);
    clock.sleep_until(clock.now() + std::chrono::milliseconds(4));
    std::memset(rows, static_cast<int>(piece), Staging::kPieceBytes);
  }
  table.seal();
  EXPECT_EQ(clock.now(), std::chrono::milliseconds(36)) << "64 one by one";
  for (std::int64_t piece = 0; piece < kPieces; ++piece)
    EXPECT_EQ(*table.row(piece * kRows + 7), static_cast<std::byte>(piece));
}

TEST(TableOnADevice, ThatIsGivenUpHalfFilledWaitsForItsCopies) {
  std::vector<std::string> warnings;
  set_log_writer(
      [&](LogLevel, std::string_view line) { warnings.emplace_back(line); });
  std::unique_ptr<Device> sim =
      open_device({.kind = "sim", .virtual_time = true});
  {
    Table table(Tier::device, 3000, 4096, *sim);
    for (int piece = 0; piece < 2; ++piece)
      std::memset(table.append(table.most_rows()), 1, Staging::kPieceBytes);
  }
  set_log_writer({});
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

INSTANTIATE_TEST_SUITE_P(Tiers, TableTest,
                         testing::Values(Case{"cpu", Tier::ram},
                                         Case{"cpu", Tier::device},
                                         Case{"sim", Tier::ram},
                                         Case{"sim", Tier::device}));

DeviceSpec sim() { return {.kind = "sim", .virtual_time = true}; }

// More rows than the staging memory holds, so that it is sent several times.
INSTANTIATE_TEST_SUITE_P(
    Tiers, TierSuite,
    testing::Values(
        TierSuiteCase{"cpu_ram", {.kind = "cpu"}, {{Tier::ram, 9000}}},
        TierSuiteCase{"cpu_device", {.kind = "cpu"}, {{Tier::device, 9000}}},
        TierSuiteCase{"cpu_disk", {.kind = "cpu"}, {{Tier::disk, 900}}},
        TierSuiteCase{"sim_ram", sim(), {{Tier::ram, 9000}}},
        TierSuiteCase{"sim_device", sim(), {{Tier::device, 9000}}},
        TierSuiteCase{"sim_pinned", sim(), {{Tier::pinned, 9000}}},
        TierSuiteCase{"sim_disk", sim(), {{Tier::disk, 900}}},
        TierSuiteCase{"sim_device_and_pinned",
                      sim(),
                      {{Tier::device, 5000}, {Tier::pinned, 700}}},
        TierSuiteCase{
            "sim_device_ram_and_disk",
            sim(),
            {{Tier::device, 5000}, {Tier::ram, 700}, {Tier::disk, 400}}}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock
