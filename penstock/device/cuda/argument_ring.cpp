#include "penstock/device/cuda/argument_ring.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock::cuda {

ArgumentRing::~ArgumentRing() {
  try {
    for (const Piece& piece : pieces_) piece.read.wait();
  } catch (...) {
    log_exception(LogLevel::warning, "cuda: an operation failed");
  }
}

bool ArgumentRing::taken(std::size_t begin, std::size_t end) const {
  return std::ranges::any_of(pieces_, [&](const Piece& piece) {
    return piece.begin < end && begin < piece.end;
  });
}

std::byte* ArgumentRing::take(std::size_t bytes) {
  constexpr std::size_t kAlign = 8;
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  PENSTOCK_ASSERT(bytes <= memory_.size(),
                  "more arguments of an operation than the ring holds");
  while (!pieces_.empty() && pieces_.front().read.passed()) pieces_.pop_front();
  if (memory_.size() - next_ < bytes) next_ = 0;
  std::size_t end = next_ + bytes;
  // They are read in the order in which they came.
  while (taken(next_, end)) {
    pieces_.front().read.wait();
    pieces_.pop_front();
  }
  std::byte* place = memory_.data() + next_;
  pieces_.push_back({next_, end, Event()});
  next_ = end;
  return place;
}

void ArgumentRing::read_until(Event event) {
  pieces_.back().read = std::move(event);
}

void PinnedRing::grow(Device& device, std::size_t bytes) {
  if (ring != nullptr && memory.size() >= bytes) return;
  ring.reset();  // waits for its readers
  memory = {};
  memory = device.allocate_pinned(bytes);
  ring = std::make_unique<ArgumentRing>(std::span(memory.data(), bytes));
}

}  // namespace penstock::cuda
