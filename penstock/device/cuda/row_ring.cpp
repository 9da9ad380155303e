#include "penstock/device/cuda/row_ring.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock::cuda {
namespace {

/// False when one of them is below -1.
bool copied(std::span<const std::int64_t> rows, std::int64_t* to) {
  // One pass without branches: r + 1 is negative for r below -1 alone.
  std::int64_t all = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    to[i] = rows[i];
    all |= static_cast<std::int64_t>(static_cast<std::uint64_t>(rows[i]) + 1);
  }
  return all >= 0;
}

}  // namespace

RowRing::~RowRing() {
  try {
    for (const Piece& piece : pieces_) piece.read.wait();
  } catch (...) {
    log_exception(LogLevel::warning, "cuda: a gather failed");
  }
}

bool RowRing::taken(std::size_t begin, std::size_t end) const {
  return std::ranges::any_of(pieces_, [&](const Piece& piece) {
    return piece.begin < end && begin < piece.end;
  });
}

const std::int64_t* RowRing::put(std::span<const std::int64_t> rows) {
  PENSTOCK_ASSERT(rows.size() <= memory_.size(),
                  "more row indices than the ring holds");
  while (!pieces_.empty() && pieces_.front().read.passed()) pieces_.pop_front();
  if (memory_.size() - next_ < rows.size()) next_ = 0;
  std::size_t end = next_ + rows.size();
  // They are read in the order in which they came.
  while (taken(next_, end)) {
    pieces_.front().read.wait();
    pieces_.pop_front();
  }
  std::int64_t* place = memory_.data() + next_;
  PENSTOCK_ASSERT(copied(rows, place), "a gather names a row below -1");
  pieces_.push_back({next_, end, Event()});
  next_ = end;
  return place;
}

void RowRing::read_until(Event event) {
  pieces_.back().read = std::move(event);
}

}  // namespace penstock::cuda
