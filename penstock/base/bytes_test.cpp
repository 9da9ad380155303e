#include "penstock/base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace penstock {
namespace {

TEST(Bytes, IsEmptyAndUsableAfterItWasMovedFrom) {
  Bytes bytes;
  bytes.append_value(std::int64_t{7});
  Bytes taken = std::move(bytes);
  EXPECT_EQ(bytes.size(), 0u);
  bytes.append_value(std::int64_t{9});
  EXPECT_EQ(bytes.as<std::int64_t>()[0], 9);
  EXPECT_EQ(taken.as<std::int64_t>()[0], 7);
}

TEST(Bytes, KeepsTheOwnerOfBorrowedBytesAlive) {
  auto owner = std::make_shared<std::array<std::byte, 4>>();
  Bytes bytes = Bytes::borrow(*owner, owner);
  EXPECT_FALSE(bytes.owned());
  EXPECT_EQ(owner.use_count(), 2);
  Bytes taken = std::move(bytes);
  EXPECT_EQ(taken.data(), owner->data());
  taken.clear();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(Bytes, HasReadablePaddingBehindItsEnd) {
  Bytes bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes.append_value(static_cast<char>(i));
    const std::byte* end = bytes.data() + bytes.size();
    volatile std::byte last = end[Bytes::kPadding - 1];
    (void)last;
  }
}

}  // namespace
}  // namespace penstock
