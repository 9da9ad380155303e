#include "penstock/base/aligned.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <vector>

namespace penstock {
namespace {

std::uintptr_t address(const AlignedBytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.get());
}

TEST(AlignedBytes, StartAtACacheLineAndLargeOnesAtAHugePage) {
  for (std::size_t size : {std::size_t{1}, std::size_t{100}, kHugeFrom - 1}) {
    AlignedBytes bytes = allocate_aligned(size);
    EXPECT_EQ(address(bytes) % 64, 0u) << size;
    std::memset(bytes.get(), 1, size);
  }
  AlignedBytes huge = allocate_aligned(kHugeFrom + 1);
  EXPECT_EQ(address(huge) % (std::size_t{2} << 20), 0u);
  std::memset(huge.get(), 1, kHugeFrom + 1);
}

TEST(AlignedBytes, AreUsedAgainWhateverIsAllocatedBetween) {
#ifdef PENSTOCK_SANITIZED
  GTEST_SKIP() << "the address sanitizer keeps freed memory on purpose";
#endif
  std::set<std::uintptr_t> addresses;
  std::vector<std::unique_ptr<char[]>> kept;
  kept.reserve(1000);
  for (int i = 0; i < 1000; ++i) {
    AlignedBytes one = allocate_aligned(100'000);
    AlignedBytes other = allocate_aligned(100'000);
    addresses.insert(address(one));
    kept.push_back(std::make_unique<char[]>(200));
  }
  EXPECT_LT(addresses.size(), 10u);
}

TEST(AlignedBytes, AreThereForNothingToo) {
  EXPECT_NE(allocate_aligned(0), nullptr);
}

TEST(AlignedBytes, AreNullWhereThereIsNoMemory) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(allocate_aligned(kAll), nullptr);  // rounded up it would be 0
}

}  // namespace
}  // namespace penstock
