#include "penstock/base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "penstock/base/random.h"
#include "penstock/base/sha256_block.h"

namespace penstock {
namespace {

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.hex();
}

// The examples of FIPS 180-4 and the empty text.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotCareHowTheBytesArrive) {
  std::string text(300, 'x');
  for (std::size_t cut : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 128u, 299u}) {
    Sha256 hash;
    hash.add(std::string_view(text).substr(0, cut));
    hash.add(std::string_view(text).substr(cut));
    EXPECT_EQ(hash.hex(), sha256(text)) << cut;
  }
}

TEST(Sha256, IsTheSameByTheProcessorsInstructions) {
  const Sha256Block by_instructions = sha256_block_by_instructions();
  if (by_instructions == nullptr) GTEST_SKIP() << "no SHA instructions here";
  Random random(1, 0, 0, 0);
  std::array<std::uint32_t, 8> plain{}, other{};
  for (int n = 0; n < 1000; ++n) {
    std::array<std::byte, 64> block;
    for (std::byte& byte : block) byte = static_cast<std::byte>(random.next());
    sha256_block(plain.data(), block.data());
    by_instructions(other.data(), block.data());
    ASSERT_EQ(plain, other);
  }
}

TEST(Hash64, EveryBitAndTheLengthCount) {
  std::set<std::uint64_t> seen;
  std::string text(40, '\0');
  for (std::size_t length = 0; length <= text.size(); ++length)
    seen.insert(hash64(std::string_view(text).substr(0, length)));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(1 << (bit % 8));
    seen.insert(hash64(other));
  }
  EXPECT_EQ(seen.size(), 41u + 320u);
  EXPECT_NE(hash64(text, 1), hash64(text, 2));
}

// Ids of rows, splits and stores hang on it: of each length, under the hash of
// the length before.
TEST(Hash64, IsWhatItWasInEveryRelease) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += static_cast<char>(200 + 37 * i);
  std::uint64_t hash = 0;
  for (std::size_t length = 0; length <= text.size(); ++length)
    hash = hash64(std::string_view(text).substr(0, length), hash);
  EXPECT_EQ(hash, 0x314db337f86180a0u);
}

TEST(Random, IsAFunctionOfItsKeyAlone) {
  Random a(1, 2, 3, 4), b(1, 2, 3, 4), c(1, 2, 4, 3);
  std::uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
}

TEST(Random, DrawsEvenlyAndNormally) {
  double sum = 0, squares = 0, uniform = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    Random random(7, 0, static_cast<std::uint64_t>(i), 0);
    double value = random.normal();
    sum += value;
    squares += value * value;
    uniform += random.uniform();
    EXPECT_LT(random.below(10), 10u);
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.03);
  EXPECT_NEAR(squares / kDraws, 1, 0.05);
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.01);
}

}  // namespace
}  // namespace penstock
