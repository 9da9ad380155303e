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

/// Reads bytes of something that is not in memory. Belongs to one thread.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  /// Those from `begin` on. Throws Error(source), files.damaged.
  virtual void read(std::size_t begin, std::span<std::byte> to) = 0;
};
using OpenPieces = std::function<std::unique_ptr<PieceReader>()>;

/// An array of which all bytes can be seen: those of a mapped file, or what
/// `unpack` makes of a compressed member when it is first opened. Rows in C
/// order and of our byte order are lent.
std::shared_ptr<const files::RowArray> make_mapped_array(ArrayLayout layout,
                                                         HeldBytes held);
std::shared_ptr<const files::RowArray> make_unpacked_array(
    ArrayLayout layout, std::function<HeldBytes()> unpack);
/// An array in C order that is too large to be unpacked as a whole: `prepare`
/// is called when it is first opened, and makes readers of its bytes.
std::shared_ptr<const files::RowArray> make_pieced_array(
    ArrayLayout layout, std::function<OpenPieces()> prepare);

}  // namespace penstock::npy
