#include "penstock/device/cuda/gather_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/device/cpu/host_bytes.h"

namespace penstock::cuda {
namespace {

using testing::Each;

/// Runs a launch as a GPU would: all threads of a block do the first half, then
/// all do the second, blocks and threads in an order that nobody may count on.
/// Checks that every unit is aligned and that `near` is large enough.
void run(const GatherLaunch& launch, Random& random) {
  const GatherWork& work = launch.work;
  std::vector<std::uint32_t> threads(kGatherThreads);
  std::iota(threads.begin(), threads.end(), 0u);
  for (std::size_t i = threads.size(); i > 1; --i)
    std::swap(threads[i - 1], threads[random.below(i)]);
  for (std::uint32_t b = launch.blocks; b-- > 0;) {
    BlockShare share = share_of(work, b);
    ASSERT_GT(share.units, 0u);
    ASSERT_LE(share.rows * sizeof(std::int64_t), launch.near_bytes);
    std::vector<std::int64_t> near(share.rows, -77);
    for (std::uint32_t t : threads) fetch_rows(work, share, t, near.data());
    for (std::uint32_t t : threads) copy_units(work, share, t, near.data());
  }
  for (std::uint32_t p = 0; p < work.part_count; ++p) {
    const GatherPart& part = work.parts[p];
    std::uint64_t all = reinterpret_cast<std::uintptr_t>(part.table) |
                        part.row_stride |
                        reinterpret_cast<std::uintptr_t>(part.out);
    EXPECT_EQ(all % part.unit_bytes, 0u);
    EXPECT_EQ(part.units * part.unit_bytes % part.unit_bytes, 0u);
  }
}

/// The stream's loop over launches, on the host.
void gather_by_launches(const Gather& gather, std::size_t most_rows,
                        int processors, Random& random) {
  for (std::size_t first = 0; first < gather.rows.size(); first += most_rows) {
    std::size_t count = std::min(most_rows, gather.rows.size() - first);
    for (auto fields = gather.fields; !fields.empty();
         fields =
             fields.subspan(std::min<std::size_t>(fields.size(), kMostParts)))
      run(plan_launch(fields, first, count, gather.rows.data() + first,
                      processors, gather.pieces),
          random);
  }
}

/// Where a field is in a row of a table, and in the batch.
struct Place {
  std::size_t in_row, bytes, in_out;
};

struct Layout {
  std::size_t row_bytes;
  std::vector<Place> fields;
  std::size_t out_bytes;

  /// As fields of a packed table, or each of a table of its own (`apart`): a
  /// copy of that table at another place.
  std::vector<GatherField> of(const std::vector<AlignedBytes>& tables,
                              bool apart, std::byte* out) const {
    std::vector<GatherField> all;
    for (std::size_t f = 0; f < fields.size(); ++f)
      all.push_back({tables[apart ? f : 0].get() + fields[f].in_row, row_bytes,
                     fields[f].bytes, out + fields[f].in_out});
    return all;
  }
};

/// Fields of random lengths, in a random order and with gaps, at multiples of
/// `unit`; the tensors of the batch at multiples of 256.
Layout drawn_layout(Random& random, std::size_t unit, std::size_t rows) {
  Layout layout{};
  std::size_t count = 1 + random.below(6);
  std::size_t longest = random.below(4) == 0 ? 200 : 20;
  for (std::size_t f = 0; f < count; ++f) {
    layout.row_bytes += unit * random.below(2);
    std::size_t bytes = unit * random.below(longest);
    layout.fields.push_back({layout.row_bytes, bytes, 0});
    layout.row_bytes += bytes;
  }
  layout.row_bytes = std::max(unit, layout.row_bytes);
  std::reverse(layout.fields.begin(), layout.fields.end());
  for (Place& field : layout.fields) {
    field.in_out = layout.out_bytes;
    layout.out_bytes += (field.bytes * rows + 255) / 256 * 256;
  }
  return layout;
}

// Memory behind which the address sanitizer sees every step too far.
AlignedBytes random_memory(std::size_t bytes, Random& random) {
  AlignedBytes memory = allocate_host(bytes, "test");
  for (std::size_t i = 0; i < bytes; ++i)
    memory.get()[i] = static_cast<std::byte>(random.next());
  return memory;
}

void expect_what_the_host_gives(std::uint64_t seed, std::size_t unit) {
  Random random(seed, unit, 0, 0);
  std::size_t count = random.below(3) == 0 ? 700 : 1 + random.below(40);
  Layout layout = drawn_layout(random, unit, count);
  constexpr std::size_t kTableRows = 50;
  std::vector<AlignedBytes> tables;
  for (std::size_t f = 0; f < layout.fields.size(); ++f)
    tables.push_back(random_memory(kTableRows * layout.row_bytes, random));
  bool apart = random.below(2) == 0;
  std::vector<std::int64_t> rows(count);
  for (std::int64_t& row : rows)
    row = static_cast<std::int64_t>(random.below(kTableRows + 1)) - 1;
  std::vector<std::byte> ours(layout.out_bytes + 256, std::byte{7});
  std::vector<std::byte> right = ours;
  auto start = reinterpret_cast<std::uintptr_t>(ours.data());
  std::size_t shift = (256 - start % 256) % 256;
  std::size_t right_shift =
      (256 - reinterpret_cast<std::uintptr_t>(right.data()) % 256) % 256;
  std::vector<GatherField> fields =
      layout.of(tables, apart, ours.data() + shift);
  std::size_t most_rows = random.below(2) == 0 ? kMostRowsPerLaunch : 13;
  gather_by_launches({fields, rows}, most_rows,
                     static_cast<int>(random.below(200)), random);
  fields = layout.of(tables, apart, right.data() + right_shift);
  run_on_host(Gather{fields, rows});
  std::vector<std::byte> got(
      ours.begin() + static_cast<std::ptrdiff_t>(shift),
      ours.end() - static_cast<std::ptrdiff_t>(256 - shift));
  std::vector<std::byte> wanted(
      right.begin() + static_cast<std::ptrdiff_t>(right_shift),
      right.end() - static_cast<std::ptrdiff_t>(256 - right_shift));
  ASSERT_EQ(got, wanted) << "seed " << seed << ", unit " << unit
                         << (apart ? ", a table per field" : "");
}

/// The same rows, of a table as a whole and of one that is in pieces.
void expect_pieces_make_no_difference(std::uint64_t seed, std::size_t unit) {
  Random random(seed, unit, 1, 0);
  constexpr std::size_t kTableRows = 50, kRows = 300;
  Layout layout = drawn_layout(random, unit, kRows);
  std::vector<AlignedBytes> tables;
  tables.push_back(random_memory(kTableRows * layout.row_bytes, random));
  std::vector<std::int64_t> firsts;
  for (std::size_t p = random.below(kMostPieces + 1); p > 0; --p)
    firsts.push_back(static_cast<std::int64_t>(random.below(kTableRows + 1)));
  std::ranges::sort(firsts);
  std::vector<AlignedBytes> moved;
  std::vector<GatherPiece> pieces;
  for (std::int64_t first : firsts) {
    std::size_t begin = static_cast<std::size_t>(first) * layout.row_bytes;
    std::size_t bytes = kTableRows * layout.row_bytes - begin;
    moved.push_back(random_memory(bytes + 16, random));
    std::byte* at = moved.back().get() + (unit == 1 ? random.below(16) : 0);
    std::memcpy(at, tables[0].get() + begin, bytes);
    pieces.push_back(piece_of(first, at, tables[0].get(), layout.row_bytes));
  }
  std::vector<std::int64_t> rows(kRows);
  for (std::int64_t& row : rows)
    row = static_cast<std::int64_t>(random.below(kTableRows + 1)) - 1;
  std::vector<std::byte> whole(layout.out_bytes), host = whole, device = whole;
  auto of = [&](std::vector<std::byte>& out) {
    return layout.of(tables, false, out.data());
  };
  run_on_host(Gather{of(whole), rows});
  if (!firsts.empty())  // nobody looks for them at the old place
    std::memset(
        tables[0].get() +
            static_cast<std::size_t>(firsts[0]) * layout.row_bytes,
        0xDB,
        (kTableRows - static_cast<std::size_t>(firsts[0])) * layout.row_bytes);
  run_on_host(Gather{of(host), rows, pieces});
  EXPECT_EQ(host, whole) << "seed " << seed << ", unit " << unit;
  gather_by_launches({of(device), rows, pieces}, 128, 10, random);
  EXPECT_EQ(device, whole) << "seed " << seed << ", unit " << unit;
}

TEST(GatherPlan, ATableMayBeInPieces) {
  for (std::size_t unit : {1u, 4u, 16u})
    for (std::uint64_t seed = 0; seed < 60; ++seed)
      expect_pieces_make_no_difference(seed, unit);
}

TEST(GatherPlan, CopiesWhatTheHostCopiesForManyLayouts) {
  for (std::size_t unit : {1u, 2u, 4u, 8u, 16u})
    for (std::uint64_t seed = 0; seed < 60; ++seed)
      expect_what_the_host_gives(seed, unit);
}

// A plan needs no memory behind its addresses.
std::byte* at(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);
}

GatherLaunch planned(std::vector<Place> places, std::size_t row_bytes,
                     std::size_t rows = 1, std::uintptr_t table = 4096,
                     std::uintptr_t out = 8192, int processors = 1) {
  std::vector<GatherField> fields;
  for (const Place& place : places)
    fields.push_back({at(table + place.in_row), row_bytes, place.bytes,
                      at(out + place.in_out)});
  return plan_launch(fields, 0, rows, nullptr, processors);
}

TEST(GatherPlan, TakesTheLargestUnitThatIsAlignedInEveryRow) {
  auto unit = [](const GatherLaunch& launch) {
    return launch.work.parts[0].unit_bytes;
  };
  EXPECT_EQ(unit(planned({{0, 64, 0}}, 64)), 16u);
  EXPECT_EQ(unit(planned({{0, 64, 0}}, 1024)), 16u);
  EXPECT_EQ(unit(planned({{0, 64, 0}}, 72)), 8u);
  EXPECT_EQ(unit(planned({{0, 40, 0}}, 64)), 8u);
  EXPECT_EQ(unit(planned({{4, 64, 0}}, 128)), 4u);
  EXPECT_EQ(unit(planned({{0, 64, 2}}, 128)), 2u);
  EXPECT_EQ(unit(planned({{0, 64, 0}}, 64, 1, 4097)), 1u);
  EXPECT_EQ(unit(planned({{0, 64, 0}}, 64, 1, 4096, 8200)), 8u);
  EXPECT_EQ(unit(planned({{0, 33, 0}}, 64)), 1u);
}

TEST(GatherPlan, AnArrayKeepsItsUnitWhateverTheOthersAre) {
  std::vector<GatherField> fields{{at(4096), 1024, 1024, at(1 << 20)},
                                  {at(8193), 3, 3, at(2 << 20)},
                                  {at(12288), 8, 8, at(3 << 20)}};
  GatherWork work = plan_launch(fields, 0, 100, nullptr, 1).work;
  ASSERT_EQ(work.part_count, 3u);
  EXPECT_EQ(work.parts[0].unit_bytes, 16u);
  EXPECT_EQ(work.parts[1].unit_bytes, 1u);
  EXPECT_EQ(work.parts[2].unit_bytes, 8u);
  EXPECT_EQ(work.parts[2].table, at(12288));
  EXPECT_EQ(work.parts[2].row_stride, 8u);
}

TEST(GatherPlan, FieldsOfOneRowMayHaveDifferentUnits) {
  GatherWork work = planned({{0, 32, 0}, {32, 4, 256}, {36, 1, 512}}, 48).work;
  EXPECT_EQ(work.part_count, 3u);
  EXPECT_EQ(work.parts[0].units, 2u);
  EXPECT_EQ(work.parts[1].units, 1u);
  EXPECT_EQ(work.parts[2].units, 1u);
}

TEST(GatherPlan, NoRowsAndNoBytesNeedNoLaunch) {
  EXPECT_EQ(planned({{0, 16, 0}}, 16, 0).blocks, 0u);
  EXPECT_EQ(planned({{0, 0, 0}}, 16, 5).blocks, 0u);
  EXPECT_EQ(planned({}, 16, 5).blocks, 0u);
}

TEST(GatherPlan, SpreadsASmallBatchOverTheProcessors) {
  // 256 rows of 4 units: 4 blocks of one unit per thread.
  GatherLaunch small = planned({{0, 64, 0}}, 64, 256, 4096, 8192, 132);
  EXPECT_EQ(small.work.units_per_block, kGatherThreads);
  EXPECT_EQ(small.blocks, 4u);
  GatherLaunch large = planned({{0, 1024, 0}}, 1024, 16384, 4096, 8192, 132);
  EXPECT_EQ(large.work.units_per_block, kGatherThreads * kUnitsAtOnce);
  EXPECT_EQ(large.blocks, 1024u);
}

TEST(GatherPlan, EachFieldHasBlocksOfItsOwn) {
  GatherLaunch launch =
      planned({{0, 1024, 0}, {1024, 32, 1 << 25}}, 1056, 1024);
  EXPECT_EQ(launch.work.parts[1].first_block, 64u);
  EXPECT_EQ(launch.blocks, 64u + 2u);
  EXPECT_EQ(share_of(launch.work, 63).part, 0u);
  EXPECT_EQ(share_of(launch.work, 64).part, 1u);
  EXPECT_EQ(share_of(launch.work, 65).first_row, 512u);
}

TEST(GatherPlan, NeverNeedsMoreBlocksThanCudaTakes) {
  constexpr std::size_t kBytes = (std::size_t{1} << 27) - 1;  // byte by byte
  GatherLaunch launch = planned({{0, kBytes, 0}}, kBytes, kMostRowsPerLaunch);
  EXPECT_LE(launch.blocks, 1u << 30);
  EXPECT_GT(launch.blocks, 1u << 29);
}

TEST(GatherPlan, CountsBeyondFourGigabytesOfARowsBatch) {
  // 16384 rows of 1 MiB: the last block's units are the last row's.
  constexpr std::size_t kMebi = std::size_t{1} << 20;
  GatherLaunch launch = planned({{0, kMebi, 0}}, kMebi, 16384);
  BlockShare last = share_of(launch.work, launch.blocks - 1);
  EXPECT_EQ(last.first_row, 16383u);
  EXPECT_EQ(last.rows, 1u);
  EXPECT_EQ(last.skip + last.units, 65536u);
  EXPECT_EQ(
      begin_of(launch.work.parts[0], last) + std::uint64_t{16} * last.units,
      16384 * kMebi);
}

TEST(GatherPlan, MoreFieldsThanALaunchTakesGoIntoTheNext) {
  constexpr std::size_t kFields = kMostParts + 5;
  std::vector<std::uint32_t> table(2 * kFields), out(kFields);
  std::iota(table.begin(), table.end(), 0u);
  std::vector<GatherField> fields;
  for (std::size_t f = 0; f < kFields; ++f)
    fields.push_back({reinterpret_cast<const std::byte*>(&table[f]),
                      4 * kFields, 4, reinterpret_cast<std::byte*>(&out[f])});
  EXPECT_EQ(plan_launch(fields, 0, 1, nullptr, 1).work.part_count, kMostParts);
  std::vector<std::int64_t> rows{1};
  Random random(1, 0, 0, 0);
  gather_by_launches({fields, rows}, 100, 1, random);
  EXPECT_EQ(out, std::vector<std::uint32_t>(
                     table.begin() + static_cast<std::ptrdiff_t>(out.size()),
                     table.end()));
}

TEST(GatherPlan, AFieldThatLeavesItsRowIsAnInternalError) {
  for (std::size_t bytes : {std::size_t{17}, std::size_t{0} - 8}) {
    try {
      planned({{0, bytes, 0}}, 16);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
    }
  }
}

TEST(GatherPlan, ARowOfTooManyPiecesIsAnInternalError) {
  constexpr std::size_t kTooMany = (std::size_t{1} << 27) + 1;
  EXPECT_THROW(planned({{0, kTooMany, 0}}, kTooMany), Error);
}

}  // namespace
}  // namespace penstock::cuda
