#include "penstock/transforms/detail/raw_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "penstock/base/aligned.h"

namespace penstock {
namespace {

std::vector<double> of(const Bytes& kept) {
  std::span<const double> values = kept.as<double>();
  return {values.begin(), values.end()};
}

TEST(RawMemory, KeepsWhatItWasGivenAfterItIsGone) {
  std::vector<Bytes> kept;
  std::vector<std::vector<double>> given;
  {
    RawMemory memory;
    for (std::size_t i = 0; i < 200; ++i) {
      given.emplace_back(1 + 37 * i, 0.5 + static_cast<double>(i));
      kept.push_back(memory.keep(given.back()));
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(of(kept[i]), given[i]);
}

TEST(RawMemory, PutsBlocksSideBySide) {
  RawMemory memory;
  std::vector<double> values(10, 1.0);
  Bytes first = memory.keep(values);
  Bytes second = memory.keep(values);
  EXPECT_EQ(second.data(), first.data() + first.size());
}

TEST(RawMemory, TakesABlockThatIsLargerThanItsPieces) {
  RawMemory memory;
  std::vector<double> large(kHugeFrom / 4, 2.0);  // doubles: twice a piece
  Bytes kept = memory.keep(large);
  EXPECT_EQ(of(kept), large);
  EXPECT_EQ(of(memory.keep(std::vector<double>{3.0})), std::vector{3.0});
}

TEST(RawMemory, KeepsNothingOfNothing) {
  EXPECT_EQ(RawMemory().keep({}).size(), 0u);
}

}  // namespace
}  // namespace penstock
