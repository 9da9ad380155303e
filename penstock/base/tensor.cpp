#include "penstock/base/tensor.h"

namespace penstock {
namespace {
constexpr std::string_view kNames[] = {"float32", "float64", "int64"};
}

std::string_view name_of(Dtype dtype) {
  return kNames[static_cast<std::size_t>(dtype)];
}

bool dtype_from(std::string_view name, Dtype& dtype) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    dtype = static_cast<Dtype>(i);
    return true;
  }
  return false;
}

std::size_t size_of(Dtype dtype) { return dtype == Dtype::float32 ? 4 : 8; }

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
