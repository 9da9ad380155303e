#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/base/tensor.h"

namespace penstock {

/// DLPack's DLDataType with one lane.
struct DlType {
  std::uint8_t code;  ///< 0: signed, 1: unsigned, 2: IEEE, 4: bfloat, 6: bool
  std::uint8_t bits;
  friend bool operator==(const DlType&, const DlType&) = default;
};

DlType dl_type_of(Dtype dtype);
/// Does not throw: false for a type that we do not have.
bool dtype_from(DlType type, Dtype& dtype);

/// DLPack's DLTensor, declared here because its layout is the contract
/// (dlpack.h 1.0, https://dmlc.github.io/dlpack/latest/c_api.html).
struct DlTensor {
  void* data;
  std::int32_t device_type;  ///< a MemoryKind
  std::int32_t device_id;
  std::int32_t dimensions;
  std::uint8_t code;  ///< of a DlType
  std::uint8_t bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: C order
  std::uint64_t byte_offset;
};

/// DLPack's DLManagedTensor: its holder calls `deleter(this)` once.
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor* self);
};

static_assert(sizeof(void*) != 8 ||
              (sizeof(DlTensor) == 48 && offsetof(DlTensor, code) == 20 &&
               sizeof(DlManagedTensor) == 64));

/// `view` for any library that knows DLPack, without a copy. `owner` is held
/// until the deleter is called, on any thread.
DlManagedTensor* to_dlpack(const TensorView& view,
                           std::shared_ptr<const void> owner);

}  // namespace penstock
