#include "penstock/dataset/table/value_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "penstock/base/aligned.h"

namespace penstock {
namespace {

std::vector<double> of(const Bytes& kept) {
  std::span<const double> values = kept.as<double>();
  return {values.begin(), values.end()};
}

TEST(ValueMemory, KeepsWhatItWasGivenAfterItIsGone) {
  std::vector<Bytes> kept;
  std::vector<std::vector<double>> given;
  {
    ValueMemory memory;
    for (std::size_t i = 0; i < 200; ++i) {
      given.emplace_back(1 + 37 * i, 0.5 + static_cast<double>(i));
      kept.push_back(memory.keep(std::as_bytes(std::span(given.back()))));
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(of(kept[i]), given[i]);
}

TEST(ValueMemory, PutsBlocksSideBySide) {
  ValueMemory memory;
  std::vector<double> values(10, 1.0);
  Bytes first = memory.keep(std::as_bytes(std::span(values)));
  Bytes second = memory.keep(std::as_bytes(std::span(values)));
  EXPECT_EQ(second.data(), first.data() + first.size());
}

TEST(ValueMemory, TakesABlockThatIsLargerThanItsPieces) {
  ValueMemory memory;
  std::vector<double> large(kHugeFrom / 4, 2.0);  // doubles: twice a piece
  Bytes kept = memory.keep(std::as_bytes(std::span(large)));
  EXPECT_EQ(of(kept), large);
  double one = 3.0;
  EXPECT_EQ(of(memory.keep(std::as_bytes(std::span(&one, 1)))),
            std::vector{3.0});
}

TEST(ValueMemory, KeepsNothingOfNothing) {
  EXPECT_EQ(ValueMemory().keep({}).size(), 0u);
}

}  // namespace
}  // namespace penstock
