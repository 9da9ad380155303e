#include "penstock/base/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace penstock {
namespace {

struct Type {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr Type kTypes[] = {
    {Dtype::float32, "float32", 4},  {Dtype::float64, "float64", 8},
    {Dtype::int64, "int64", 8},      {Dtype::boolean, "bool", 1},
    {Dtype::uint8, "uint8", 1},      {Dtype::int8, "int8", 1},
    {Dtype::int16, "int16", 2},      {Dtype::uint16, "uint16", 2},
    {Dtype::int32, "int32", 4},      {Dtype::uint32, "uint32", 4},
    {Dtype::uint64, "uint64", 8},    {Dtype::float16, "float16", 2},
    {Dtype::bfloat16, "bfloat16", 2}};

TEST(Dtype, EachHasItsNameAndItsSize) {
  std::set<Dtype> seen;
  for (auto [dtype, name, bytes] : kTypes) {
    EXPECT_EQ(name_of(dtype), name);
    EXPECT_EQ(size_of(dtype), bytes) << name;
    EXPECT_LT(static_cast<std::size_t>(dtype), kDtypes) << name;
    seen.insert(dtype);
  }
  EXPECT_EQ(seen.size(), kDtypes);
}

TEST(Dtype, IsFoundByItsNameAlone) {
  for (auto [dtype, name, bytes] : kTypes) {
    Dtype found = dtype == Dtype::int8 ? Dtype::uint8 : Dtype::int8;
    EXPECT_TRUE(dtype_from(name, found)) << name;
    EXPECT_EQ(found, dtype);
  }
  for (std::string_view wrong : {"", "float", "boolean", "Float32", "int"}) {
    Dtype untouched = Dtype::int16;
    EXPECT_FALSE(dtype_from(wrong, untouched)) << wrong;
    EXPECT_EQ(untouched, Dtype::int16);
  }
}

TEST(TensorView, CountsItsBytesByShapeAndDtype) {
  EXPECT_EQ((TensorView{.dtype = Dtype::float16, .shape = {3, 5}}).bytes(),
            30u);
  EXPECT_EQ((TensorView{.dtype = Dtype::boolean, .shape = {}}).bytes(), 1u);
  EXPECT_EQ((TensorView{.dtype = Dtype::uint64, .shape = {4, 0}}).bytes(), 0u);
}

TEST(Shape, IsShownAsAList) {
  EXPECT_EQ(text_of({}), "[]");
  EXPECT_EQ(text_of({256, 10, 6}), "[256, 10, 6]");
}

}  // namespace
}  // namespace penstock
