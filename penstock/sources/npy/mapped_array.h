#pragma once

#include <functional>
#include <memory>
#include <span>

#include "penstock/sources/npy/npy_header.h"

namespace penstock::npy {

/// Bytes and what keeps them alive.
struct HeldBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// An array of which all bytes can be seen: those of a mapped file, or what
/// `unpack` makes of a compressed member when it is first opened. Rows in C
/// order and of our byte order are lent.
std::shared_ptr<const files::RowArray> make_mapped_array(ArrayLayout layout,
                                                         HeldBytes held);
std::shared_ptr<const files::RowArray> make_unpacked_array(
    ArrayLayout layout, std::function<HeldBytes()> unpack);

}  // namespace penstock::npy
