#include "penstock/base/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(Dlpack, ShowsTheSameMemoryShapeAndDevice) {
  std::array<float, 6> numbers{};
  TensorView view{.data = reinterpret_cast<std::byte*>(numbers.data()),
                  .shape = {2, 3},
                  .memory = MemoryKind::cuda,
                  .device_id = 1};
  DlManagedTensor* managed = to_dlpack(view, nullptr);
  const DlTensor& tensor = managed->tensor;
  EXPECT_EQ(tensor.data, numbers.data());
  EXPECT_EQ(tensor.device_type, 2);
  EXPECT_EQ(tensor.device_id, 1);
  EXPECT_THAT(
      std::span(tensor.shape, static_cast<std::size_t>(tensor.dimensions)),
      ElementsAre(2, 3));
  EXPECT_EQ(tensor.strides, nullptr);
  managed->deleter(managed);
}

TEST(Dlpack, NamesEveryDtype) {
  struct Type {
    Dtype dtype;
    int code, bits;
  };
  constexpr Type kTypes[] = {
      {Dtype::float32, 2, 32}, {Dtype::float64, 2, 64}, {Dtype::int64, 0, 64},
      {Dtype::boolean, 6, 8},  {Dtype::uint8, 1, 8},    {Dtype::int8, 0, 8},
      {Dtype::int16, 0, 16},   {Dtype::uint16, 1, 16},  {Dtype::int32, 0, 32},
      {Dtype::uint32, 1, 32},  {Dtype::uint64, 1, 64},  {Dtype::float16, 2, 16},
      {Dtype::bfloat16, 4, 16}};
  static_assert(std::size(kTypes) == kDtypes);
  for (auto [dtype, code, bits] : kTypes) {
    DlManagedTensor* managed =
        to_dlpack({.dtype = dtype, .shape = {}}, nullptr);
    EXPECT_EQ(managed->tensor.code, code) << name_of(dtype);
    EXPECT_EQ(managed->tensor.bits, bits) << name_of(dtype);
    EXPECT_EQ(managed->tensor.lanes, 1);
    managed->deleter(managed);
  }
}

TEST(Dlpack, KnowsEveryDtypeByItsTypeAndNoOther) {
  for (std::size_t i = 0; i < kDtypes; ++i) {
    auto dtype = static_cast<Dtype>(i);
    Dtype found = dtype == Dtype::int8 ? Dtype::uint8 : Dtype::int8;
    EXPECT_TRUE(dtype_from(dl_type_of(dtype), found));
    EXPECT_EQ(found, dtype);
  }
  Dtype untouched = Dtype::int8;
  EXPECT_FALSE(dtype_from(DlType{2, 8}, untouched)) << "no float of 8 bits";
  EXPECT_FALSE(dtype_from(DlType{5, 64}, untouched)) << "no complex number";
  EXPECT_EQ(untouched, Dtype::int8);
}

TEST(Dlpack, HoldsTheOwnerUntilTheDeleterIsCalled) {
  auto owner = std::make_shared<int>(7);
  DlManagedTensor* managed = to_dlpack({.shape = {1}}, owner);
  EXPECT_EQ(owner.use_count(), 2);
  managed->deleter(managed);
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace penstock
