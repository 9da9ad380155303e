#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "penstock/base/aligned.h"
#include "penstock/base/bytes.h"
#include "penstock/base/held_memory.h"

namespace penstock {

/// Where a parser keeps the values of its rows. Many blocks share one large
/// piece of memory, which goes with the last of them: blocks of their own
/// would each be mapped and cleared again by the system, page by page.
class ValueMemory {
 public:
  /// A copy that keeps its memory alive by itself, aligned for float64.
  Bytes keep(std::span<const std::byte> values);

 private:
  struct Piece {
    AlignedBytes bytes;
    MemoryCharge charge;
  };
  std::shared_ptr<Piece> piece_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace penstock
