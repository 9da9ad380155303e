#include "penstock/base/tensor.h"

namespace penstock {
namespace {

struct Known {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr Known kKnown[] = {
    {Dtype::float32, "float32", 4},  {Dtype::float64, "float64", 8},
    {Dtype::int64, "int64", 8},      {Dtype::boolean, "bool", 1},
    {Dtype::uint8, "uint8", 1},      {Dtype::int8, "int8", 1},
    {Dtype::int16, "int16", 2},      {Dtype::uint16, "uint16", 2},
    {Dtype::int32, "int32", 4},      {Dtype::uint32, "uint32", 4},
    {Dtype::uint64, "uint64", 8},    {Dtype::float16, "float16", 2},
    {Dtype::bfloat16, "bfloat16", 2}};

constexpr bool in_their_order() {
  for (std::size_t i = 0; i < std::size(kKnown); ++i)
    if (static_cast<std::size_t>(kKnown[i].dtype) != i) return false;
  return std::size(kKnown) == kDtypes;
}
static_assert(in_their_order(), "a dtype is the index of its line");

const Known& known(Dtype dtype) {
  return kKnown[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::string_view name_of(Dtype dtype) { return known(dtype).name; }

bool dtype_from(std::string_view name, Dtype& dtype) {
  for (const Known& one : kKnown) {
    if (name != one.name) continue;
    dtype = one.dtype;
    return true;
  }
  return false;
}

std::size_t size_of(Dtype dtype) { return known(dtype).bytes; }

std::int64_t elements_of(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  return count;
}

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace penstock
