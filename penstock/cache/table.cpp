#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"
#include "penstock/cache/host_memory.h"

// The rows lie in pieces, one for each tier, in order of id; a row is found by
// its piece and its place there. The pieces are filled one after the other: on
// the host in place, on a device by way of pinned staging memory, of which one
// part is written while another is copied, and on the disk not at all, since
// the store is there already.
//
// `filled[p].bytes` were appended to piece p, and `sent` of these have left the
// staging memory: never more than was appended. `current` is the first piece
// that is not full. After seal() nothing changes any more, so that threads read
// without a lock. Tables share the memory of pieces (off_device()), which lives
// as long as its last table.

namespace penstock {
namespace {

constexpr std::size_t kStagingBytes = Staging::kPieceBytes;

}  // namespace

struct Table::State {
  /// Memory of a piece that is being filled, or was.
  struct Filled {
    std::shared_ptr<Buffer> memory;
    std::size_t bytes = 0;  // appended
    std::size_t sent = 0;   // of these, out of the staging memory
  };
  std::size_t row_bytes = 0;
  std::size_t size = 0;  // bytes of the whole table
  std::vector<Piece> pieces;
  std::vector<Filled> filled;      // by piece; without memory on disk
  std::size_t current = 0;         // the piece that is being filled
  std::optional<Staging> staging;  // while a device is
  std::byte* room = nullptr;       // the part of it that is written to
  std::unique_ptr<Stream> stream;
  std::shared_ptr<const Store> store;
  const Store::Array* array = nullptr;

  std::size_t bytes_of(std::size_t piece) const {
    return static_cast<std::size_t>(pieces[piece].rows) * row_bytes;
  }
  bool staged() const {
    return pieces[current].tier == Tier::device &&
           filled[current].memory->kind() != MemoryKind::cpu;
  }

  std::size_t room_bytes() const { return std::max(kStagingBytes, row_bytes); }
  /// Queues the copy of what was written; the next rows are written meanwhile.
  void send() {
    Filled& to = filled[current];
    if (room == nullptr) return;
    staging->send(to.memory->data() + to.sent, to.bytes - to.sent, *stream);
    to.sent = to.bytes;
    room = nullptr;
  }
  void add(Tier tier, std::int64_t rows, Device& device);
  void share(const State& of, std::size_t piece, std::int64_t but_first = 0);
  /// Goes on to the next piece that is to be filled.
  void next() {
    while (current < pieces.size() &&
           filled[current].bytes == bytes_of(current)) {
      if (stream != nullptr && staged()) send();
      ++current;
    }
  }
};

void Table::State::add(Tier tier, std::int64_t rows, Device& device) {
  pieces.push_back(
      {.tier = tier,
       .first = pieces.empty() ? 0 : pieces.back().first + pieces.back().rows,
       .rows = rows});
  Piece& piece = pieces.back();
  Filled& into = filled.emplace_back();
  const std::size_t bytes = static_cast<std::size_t>(rows) * row_bytes;
  const bool own = device.memory_kind() != MemoryKind::cpu;
  size += bytes;
  if (tier == Tier::disk) {
    into.bytes = bytes;
    piece.data = array->bytes().data() +
                 static_cast<std::size_t>(piece.first) * row_bytes;
    return;
  }
  Buffer memory;
  if (tier == Tier::device && own) {
    memory = device.allocate(std::max<std::size_t>(bytes, 1));
    staging.emplace(device, 2);
    stream = device.make_stream();
  } else if (tier == Tier::pinned) {
    memory = device.allocate_pinned(std::max<std::size_t>(bytes, 1));
  } else {
    memory = lazy_host_memory(bytes);
    // Fewer TLB misses for random rows.
    ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
  }
  piece.data = memory.data();
  into.memory =
      std::make_shared<Buffer>(std::move(memory).held_for(HeldFor::rows));
}

/// A piece that is filled, but for its first rows. The host reads pinned memory
/// as any other.
void Table::State::share(const State& of, std::size_t piece,
                         std::int64_t but_first) {
  Piece shared = of.pieces[piece];
  if (shared.rows == but_first) return;
  if (shared.tier == Tier::pinned) shared.tier = Tier::ram;
  shared.first += but_first;
  shared.rows -= but_first;
  shared.data += static_cast<std::size_t>(but_first) * row_bytes;
  pieces.push_back(shared);
  filled.push_back(of.filled[piece]);
  filled.back().bytes = bytes_of(pieces.size() - 1);
  size += filled.back().bytes;
  current = pieces.size();
}

Table::Table(Tier tier, std::int64_t rows, std::size_t row_bytes,
             Device& device)
    : Table(std::array{TierRows{tier, rows}}, row_bytes, device) {}

Table::Table(std::span<const TierRows> places, std::size_t row_bytes,
             Device& device, std::shared_ptr<const Store> store,
             std::string_view array)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.row_bytes = row_bytes;
  if (!places.empty() && places.back().tier == Tier::disk) {
    s.array = &store->find(array);
    s.store = std::move(store);
  }
  for (const TierRows& place : places)
    if (place.tier != Tier::none) s.add(place.tier, place.rows, device);
}

Table::Table(std::shared_ptr<const Store> store, std::string_view array,
             std::size_t row_bytes)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.row_bytes = row_bytes;
  s.array = &store->find(array);
  s.size = s.array->bytes().size();
  s.pieces.push_back({.tier = Tier::disk,
                      .rows = static_cast<std::int64_t>(s.size / row_bytes),
                      .data = s.array->bytes().data()});
  s.filled.emplace_back().bytes = s.size;
  s.store = std::move(store);
}

void Table::check(std::span<const std::int64_t> rows) const {
  const State& s = *state_;
  if (s.array == nullptr || s.array->all_checked()) return;
  const SampleId first = s.pieces.back().first;
  for (std::int64_t row : rows) {
    std::size_t begin = static_cast<std::size_t>(row) * s.row_bytes;
    if (row >= first) s.array->check(begin, begin + s.row_bytes);
  }
}

Table::Table(std::unique_ptr<State> state) : state_(std::move(state)) {}

Table Table::off_device(Tier to, std::int64_t kept, Device& device) const {
  const State& s = *state_;
  const Piece& there = s.pieces[0];
  PENSTOCK_ASSERT(there.tier == Tier::device && kept <= there.rows,
                  "the device keeps so many rows");
  auto made = std::make_unique<State>();
  State& t = *made;
  t.row_bytes = s.row_bytes;
  t.store = s.store;
  t.array = s.array;
  if (to == Tier::disk) {
    t.add(Tier::disk, s.pieces.back().first + s.pieces.back().rows, device);
    return Table(std::move(made));
  }
  Staging staging(device, 2);
  std::unique_ptr<Stream> stream = device.make_stream();
  const std::byte* from = there.data;
  for (std::int64_t rows : {kept, there.rows - kept}) {
    if (rows == 0) continue;
    t.add(Tier::ram, rows, device);
    State::Filled& into = t.filled.back();
    const std::size_t bytes = t.bytes_of(t.pieces.size() - 1);
    staging.fetch(into.memory->data(), from, bytes, *stream);
    into.bytes = bytes;
    from += bytes;
  }
  for (std::size_t p = 1; p < s.pieces.size(); ++p) t.share(s, p);
  t.current = t.pieces.size();
  return Table(std::move(made));
}

Table Table::on_device(std::int64_t rows, Device& device) const {
  const State& s = *state_;
  auto made = std::make_unique<State>();
  made->row_bytes = s.row_bytes;
  made->store = s.store;
  made->array = s.array;
  made->add(Tier::device, rows, device);
  Table table(std::move(made));
  const std::byte* from = s.pieces[0].data;
  while (std::int64_t some = table.most_rows()) {
    const std::size_t bytes = static_cast<std::size_t>(some) * s.row_bytes;
    std::memcpy(table.append(some), from, bytes);
    from += bytes;
  }
  for (std::size_t p = 0; p < s.pieces.size(); ++p)
    table.state_->share(s, p, p == 0 ? rows : 0);
  table.seal();
  return table;
}

std::vector<TierRows> Table::places() const {
  std::vector<TierRows> places;
  for (const Piece& piece : pieces())
    if (!places.empty() && places.back().tier == piece.tier)
      places.back().rows += piece.rows;
    else
      places.push_back({piece.tier, piece.rows});
  return places;
}

Table::~Table() = default;
Table::Table(Table&&) noexcept = default;

std::int64_t Table::most_rows() const {
  State& s = *state_;
  s.next();
  if (s.current == s.pieces.size()) return 0;
  std::size_t left = s.bytes_of(s.current) - s.filled[s.current].bytes;
  return static_cast<std::int64_t>(std::min(s.room_bytes(), left) /
                                   s.row_bytes);
}

std::byte* Table::append(std::int64_t rows) {
  State& s = *state_;
  PENSTOCK_ASSERT(rows > 0 && (on_host() || rows <= most_rows()),
                  "so many rows fit at a time");
  PENSTOCK_ASSERT(s.current < s.pieces.size(), "the table is full");
  std::size_t bytes = static_cast<std::size_t>(rows) * s.row_bytes;
  State::Filled& into = s.filled[s.current];
  PENSTOCK_ASSERT(into.bytes + bytes <= s.bytes_of(s.current),
                  "the table is full");
  std::byte* at = into.memory->data() + into.bytes;
  if (s.staged()) {
    if (into.bytes - into.sent + bytes > s.room_bytes()) s.send();
    if (s.room == nullptr) s.room = s.staging->room(s.room_bytes());
    at = s.room + (into.bytes - into.sent);
  }
  into.bytes += bytes;
  return at;
}

bool Table::on_host() const {
  const State& s = *state_;
  return s.pieces.size() == 1 && s.stream == nullptr;
}

// Follows each cycle of the permutation to its end, with one row of extra
// memory.
// Each row is moved once, so it takes as many copies as rows and one more for
// each cycle; `done` marks what has its final contents.
void Table::reorder(const std::function<std::int64_t(std::int64_t)>& place) {
  State& s = *state_;
  PENSTOCK_ASSERT(on_host() && s.filled[0].bytes == s.size,
                  "every row was appended, on the host");
  if (s.size == 0) return;
  std::byte* const memory = s.filled[0].memory->data();
  const std::size_t count = s.size / s.row_bytes;
  auto row = [&](std::size_t at) { return memory + at * s.row_bytes; };
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
  s.next();
  PENSTOCK_ASSERT(s.current == s.pieces.size(), "every row was appended");
  if (s.stream != nullptr) s.stream->synchronize();
  s.stream.reset();
  s.staging.reset();
}

std::span<const Table::Piece> Table::pieces() const { return state_->pieces; }

const std::byte* Table::row(SampleId id) const {
  const State& s = *state_;
  const Piece* piece = &s.pieces.back();
  while (id < piece->first) --piece;
  return piece->data +
         static_cast<std::size_t>(id - piece->first) * s.row_bytes;
}

std::size_t Table::bytes() const { return state_->size; }
const std::byte* Table::data() const { return state_->pieces[0].data; }

}  // namespace penstock
