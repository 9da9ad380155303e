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
  for (auto [dtype, code, bits] :
       {std::tuple{Dtype::float32, 2, 32}, std::tuple{Dtype::float64, 2, 64},
        std::tuple{Dtype::int64, 0, 64}}) {
    DlManagedTensor* managed =
        to_dlpack({.dtype = dtype, .shape = {}}, nullptr);
    EXPECT_EQ(managed->tensor.code, code);
    EXPECT_EQ(managed->tensor.bits, bits);
    EXPECT_EQ(managed->tensor.lanes, 1);
    managed->deleter(managed);
  }
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
