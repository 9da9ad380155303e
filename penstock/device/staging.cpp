#include <algorithm>
#include <cstring>
#include <deque>

#include "penstock/base/log.h"
#include "penstock/device/device.h"

namespace penstock {

Staging::~Staging() {
  try {
    for (const Piece& piece : pieces_) piece.copied.wait();
  } catch (...) {
    log_exception(LogLevel::warning, "a copy to or from a device failed");
  }
}

// Pieces are used in turn, and a piece is filled again only after the event of
// its last copy. So as many copies are in flight as there are pieces, and a
// caller that is faster waits here.
std::byte* Staging::room(std::size_t bytes) {
  at_ = (at_ + 1) % pieces_.size();
  Piece& piece = pieces_[at_];
  piece.copied.wait();
  if (piece.memory.size() < bytes)
    piece.memory = device_.allocate_pinned(bytes).held_for(HeldFor::copies);
  return piece.memory.data();
}

void Staging::send(std::byte* to, std::size_t bytes, Stream& stream) {
  Piece& piece = pieces_[at_];
  stream.copy(to, piece.memory.data(), bytes);
  piece.copied = stream.record_untimed();
}

// A piece is read while those behind it are on their way.
void Staging::fetch(std::byte* to, const std::byte* from, std::size_t bytes,
                    Stream& stream) {
  struct Part {
    const std::byte* here;
    std::size_t begin, size;
    Event copied;
  };
  std::deque<Part> coming;
  auto read_first = [&] {
    coming.front().copied.wait();
    std::memcpy(to + coming.front().begin, coming.front().here,
                coming.front().size);
    coming.pop_front();
  };
  for (std::size_t at = 0; at < bytes; at += kPieceBytes) {
    if (coming.size() == pieces_.size()) read_first();
    std::size_t size = std::min(kPieceBytes, bytes - at);
    std::byte* here = room(size);
    stream.copy(here, from + at, size);
    pieces_[at_].copied = stream.record_untimed();
    coming.push_back({here, at, size, pieces_[at_].copied});
  }
  while (!coming.empty()) read_first();
}

}  // namespace penstock
