#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// What an element of a tensor is.
enum class Dtype : std::uint8_t {
  float32,
  float64,
  int64,
  boolean,  ///< named "bool"; one byte, 0 or 1
  uint8,
  int8,
  int16,
  uint16,
  int32,
  uint32,
  uint64,
  float16,
  bfloat16,
};
/// All of them, in their order.
inline constexpr std::size_t kDtypes = 13;

/// As numpy and torch name it: "float32", "bool", "bfloat16".
std::string_view name_of(Dtype dtype);
/// Does not throw: false for an unknown name.
bool dtype_from(std::string_view name, Dtype& dtype);
/// Bytes of an element.
std::size_t size_of(Dtype dtype);

/// Extents of a tensor, outermost first.
using Shape = std::vector<std::int64_t>;

std::int64_t elements_of(const Shape& shape);
/// "[256, 10, 6]".
std::string text_of(const Shape& shape);

/// DLPack's device numbers (dlpack.h 1.0): where a tensor's bytes are. `sim`
/// memory is host memory with a simulated copy engine.
enum class MemoryKind : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,
  sim = 12
};

/// A view of a dense C-order tensor that is owned elsewhere.
struct TensorView {
  std::byte* data = nullptr;
  Dtype dtype = Dtype::float32;
  Shape shape;
  MemoryKind memory = MemoryKind::cpu;
  std::int32_t device_id = 0;  ///< which one, where there are several

  std::size_t bytes() const {
    return static_cast<std::size_t>(elements_of(shape)) * size_of(dtype);
  }
};

}  // namespace penstock
