#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"
#include "penstock/cache/host_memory.h"

namespace penstock {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20;

}  // namespace

struct Table::State {
  Tier tier;
  std::size_t row_bytes;
  std::size_t size;        // bytes of the whole table
  std::size_t filled = 0;  // bytes appended
  std::size_t sent = 0;    // bytes that left the staging memory
  Buffer memory;
  Buffer staging;  // device tier only
  std::unique_ptr<Stream> stream;
  std::shared_ptr<const Store> store;  // tier disk
  const Store::Array* array = nullptr;

  const std::byte* data() const {
    return array != nullptr ? array->bytes().data() : memory.data();
  }

  void send() {
    stream->copy(memory.data() + sent, staging.data(), filled - sent);
    stream->synchronize();
    sent = filled;
  }
};

Table::Table(Tier tier, std::int64_t rows, std::size_t row_bytes,
             Device& device)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.tier = tier;
  s.row_bytes = row_bytes;
  s.size = static_cast<std::size_t>(rows) * row_bytes;
  if (tier == Tier::device && device.memory_kind() != MemoryKind::cpu) {
    s.memory = device.allocate(std::max<std::size_t>(s.size, 1));
    s.staging = device.allocate_pinned(std::max(kStagingBytes, row_bytes));
    s.stream = device.make_stream();
  } else {
    s.memory = lazy_host_memory(s.size);
    // Fewer TLB misses for random rows.
    ::madvise(s.memory.data(), s.memory.size(), MADV_HUGEPAGE);
  }
}

Table::Table(std::shared_ptr<const Store> store, std::string_view array,
             std::size_t row_bytes)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.tier = Tier::disk;
  s.row_bytes = row_bytes;
  s.array = &store->find(array);
  s.size = s.filled = s.array->bytes().size();
  s.store = std::move(store);
}

void Table::check(std::span<const std::int64_t> rows) const {
  const State& s = *state_;
  if (s.array == nullptr) return;
  for (std::int64_t row : rows) {
    std::size_t begin = static_cast<std::size_t>(row) * s.row_bytes;
    if (row >= 0) s.array->check(begin, begin + s.row_bytes);
  }
}

Table::~Table() = default;
Table::Table(Table&&) noexcept = default;

std::int64_t Table::most_rows() const {
  std::size_t rows = kStagingBytes / state_->row_bytes;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
}

std::byte* Table::append(std::int64_t rows) {
  State& s = *state_;
  std::size_t bytes = static_cast<std::size_t>(rows) * s.row_bytes;
  PENSTOCK_ASSERT(!s.stream || rows <= most_rows(),
                  "so many rows fit at a time");
  PENSTOCK_ASSERT(s.filled + bytes <= s.size, "the table is full");
  std::byte* at = s.memory.data() + s.filled;
  if (s.stream) {
    if (s.filled - s.sent + bytes > s.staging.size()) s.send();
    at = s.staging.data() + (s.filled - s.sent);
  }
  s.filled += bytes;
  return at;
}

bool Table::on_host() const { return state_->stream == nullptr; }

// Follows each cycle of the permutation to its end, with one row of extra
// memory.
void Table::reorder(const std::function<std::int64_t(std::int64_t)>& place) {
  State& s = *state_;
  PENSTOCK_ASSERT(!s.stream && s.filled == s.size,
                  "every row was appended, on the host");
  if (s.size == 0) return;
  const std::size_t count = s.size / s.row_bytes;
  auto row = [&](std::size_t at) { return s.memory.data() + at * s.row_bytes; };
  std::vector<bool> done(count);
  std::vector<std::byte> first(s.row_bytes);
  for (std::size_t begin = 0; begin < count; ++begin) {
    if (done[begin]) continue;
    auto from =
        static_cast<std::size_t>(place(static_cast<std::int64_t>(begin)));
    if (from == begin) continue;
    std::memcpy(first.data(), row(begin), s.row_bytes);
    std::size_t at = begin;
    for (; from != begin; from = static_cast<std::size_t>(
                              place(static_cast<std::int64_t>(at)))) {
      PENSTOCK_ASSERT(from < count && !done[from], "each place comes once");
      std::memcpy(row(at), row(from), s.row_bytes);
      done[from] = true;
      at = from;
    }
    std::memcpy(row(at), first.data(), s.row_bytes);
  }
}

void Table::seal() {
  State& s = *state_;
  PENSTOCK_ASSERT(s.filled == s.size, "every row was appended");
  if (!s.stream) return;
  s.send();
  s.stream.reset();
  s.staging = Buffer();
}

Tier Table::tier() const { return state_->tier; }
std::size_t Table::bytes() const { return state_->size; }
const std::byte* Table::data() const { return state_->data(); }

}  // namespace penstock
