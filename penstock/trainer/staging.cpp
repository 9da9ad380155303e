#include "penstock/trainer/staging.h"

namespace penstock {

std::byte* Staging::room(std::size_t bytes) {
  at_ = (at_ + 1) % pieces_.size();
  Piece& piece = pieces_[at_];
  piece.sent.wait();
  if (piece.memory.size() < bytes)
    piece.memory = device_.allocate_pinned(bytes);
  piece.bytes = bytes;
  return piece.memory.data();
}

void Staging::send(std::byte* to, Stream& stream) {
  Piece& piece = pieces_[at_];
  stream.copy(to, piece.memory.data(), piece.bytes);
  piece.sent = stream.record_untimed();
}

}  // namespace penstock
