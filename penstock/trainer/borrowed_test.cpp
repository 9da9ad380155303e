#include "penstock/trainer/borrowed.h"

#include <gtest/gtest.h>

#include <array>

namespace penstock {
namespace {

TEST(Borrowed, EachDtypeHasItsTypeAndItsSize) {
  constexpr std::pair<Dtype, at::ScalarType> kTypes[] = {
      {Dtype::float32, at::kFloat},    {Dtype::float64, at::kDouble},
      {Dtype::int64, at::kLong},       {Dtype::boolean, at::kBool},
      {Dtype::uint8, at::kByte},       {Dtype::int8, at::kChar},
      {Dtype::int16, at::kShort},      {Dtype::uint16, at::kUInt16},
      {Dtype::int32, at::kInt},        {Dtype::uint32, at::kUInt32},
      {Dtype::uint64, at::kUInt64},    {Dtype::float16, at::kHalf},
      {Dtype::bfloat16, at::kBFloat16}};
  static_assert(std::size(kTypes) == kDtypes);
  alignas(8) std::array<std::byte, 64> memory{};
  for (auto [dtype, type] : kTypes) {
    at::Tensor tensor =
        borrowed({.data = memory.data(), .dtype = dtype, .shape = {2, 3}});
    EXPECT_EQ(tensor.scalar_type(), type) << name_of(dtype);
    EXPECT_EQ(tensor.element_size(), size_of(dtype)) << name_of(dtype);
    EXPECT_EQ(tensor.data_ptr(), memory.data());
  }
}

}  // namespace
}  // namespace penstock
