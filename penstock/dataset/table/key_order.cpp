#include "penstock/dataset/table/key_order.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/exec/exec.h"

// Keys are stored in the blocks that they arrived in, so that comparing two of
// them reads two distant places of memory. Each row therefore carries eight
// bytes of its key, as a number that compares as they do: those after the bytes
// with which all keys begin.
//
// Rows are distributed to buckets, between keys that a sample of the rows says
// are about equally far apart, and buckets are sorted one by one: they stay in
// the cache, and threads share them. Within a bucket, rows whose eight bytes
// are the same are sorted again, by the next eight in which they differ. Rows
// that are still the same have one key.

namespace penstock {
namespace {

constexpr std::size_t kBucketRows = 4096;  // 64 KB
constexpr std::size_t kMostBuckets = 4096;
constexpr std::size_t kSamplesPerBucket = 16;
/// Groups of at most this many rows are compared by their whole keys.
constexpr std::size_t kFewRows = 8;
/// How many times rows are sorted by the next part of their keys, at most.
constexpr int kMostLevels = 16;

/// A row that is being sorted, with a part of its key.
struct Entry {
  std::uint64_t part;
  RowRef ref;
};

/// The keys of all rows, by where they arrived.
class Keys {
 public:
  explicit Keys(const std::vector<ParsedBlock>& blocks) : blocks_(blocks) {
    for (std::uint32_t b = 0; b < blocks.size(); ++b)
      if (blocks[b].rows() > 0) filled_.push_back(b);
    if (filled_.empty()) return;
    integers_ = blocks[filled_[0]].keys.type() == ColumnType::int64;
    // Parsing threads finish blocks in any order; where the source gives its
    // rows by key, only the blocks are left to be sorted.
    std::ranges::sort(filled_, [&](std::uint32_t a, std::uint32_t b) {
      return less({a, 0}, {b, 0});
    });
    starts_ = {0};
    for (std::uint32_t b : filled_)
      starts_.push_back(starts_.back() + blocks[b].rows());
  }

  std::int64_t count() const { return starts_.empty() ? 0 : starts_.back(); }
  bool integers() const { return integers_; }
  std::int64_t integer(RowRef row) const {
    return blocks_[row.block].keys.integer(row.row);
  }
  std::string_view bytes(RowRef row) const {
    return blocks_[row.block].keys.bytes(row.row);
  }
  std::string shown(RowRef row) const {
    return blocks_[row.block].keys.shown(row.row);
  }
  bool less(RowRef a, RowRef b) const {
    return integers_ ? integer(a) < integer(b) : bytes(a) < bytes(b);
  }
  /// A part of the key that compares as the key does, unless it is the same.
  std::uint64_t part(RowRef row, std::size_t begin) const {
    if (!integers_) return key_part(bytes(row), begin);
    return static_cast<std::uint64_t>(integer(row)) ^ (std::uint64_t{1} << 63);
  }

  /// Calls `act` with the rows at [begin, end), in order of the blocks.
  template <class Act>
  void each(std::int64_t begin, std::int64_t end, Act act) const {
    auto after = std::ranges::upper_bound(starts_, begin);
    for (auto b = static_cast<std::size_t>(after - starts_.begin()) - 1;
         begin < end; ++b)
      for (; begin < std::min(end, starts_[b + 1]); ++begin)
        act(begin,
            RowRef{filled_[b], static_cast<std::uint32_t>(begin - starts_[b])});
  }

 private:
  const std::vector<ParsedBlock>& blocks_;
  std::vector<std::uint32_t> filled_;  // blocks, by their first key
  std::vector<std::int64_t> starts_;   // rows before each of them; all
  bool integers_ = false;
};

/// How many bytes at the beginning of all keys are the same.
std::size_t common_beginning(const Keys& keys, int workers) {
  if (keys.integers()) return 0;
  std::string_view first;
  keys.each(0, 1, [&](std::int64_t, RowRef row) { first = keys.bytes(row); });
  Mutex mutex;
  std::size_t common = first.size();
  in_ranges(workers, keys.count(), [&](std::int64_t begin, std::int64_t end) {
    std::size_t here = first.size();
    keys.each(begin, end, [&](std::int64_t, RowRef row) {
      here = common_length(first, keys.bytes(row), here);
    });
    Lock lock(mutex);
    common = std::min(common, here);
  });
  return common;
}

/// Sorts rows by key. One per thread.
class EntrySort {
 public:
  explicit EntrySort(const Keys& keys) : keys_(keys) {}

  /// The rows carry a part of their key. Returns the first row in order whose
  /// key another row has too.
  std::optional<RowRef> sort(std::span<Entry> rows) {
    twice_.reset();
    sort_parts(rows, 0);
    return twice_;
  }

 private:
  void sort_parts(std::span<Entry> rows, int level) {
    std::ranges::sort(rows, {}, &Entry::part);
    for (std::size_t from = 0, to = 0; from < rows.size(); from = to) {
      while (to < rows.size() && rows[to].part == rows[from].part) ++to;
      if (to - from > 1) sort_same(rows.subspan(from, to - from), level + 1);
    }
  }

  /// Rows whose parts are the same.
  void sort_same(std::span<Entry> rows, int level) {
    if (keys_.integers()) return found_twice(rows[0].ref);
    std::string_view first = keys_.bytes(rows[0].ref);
    std::size_t common = first.size(), longest = first.size();
    for (const Entry& row : rows) {
      std::string_view key = keys_.bytes(row.ref);
      common = common_length(first, key, common);
      longest = std::max(longest, key.size());
    }
    if (common == longest) return found_twice(rows[0].ref);
    if (rows.size() <= kFewRows || level == kMostLevels)
      return sort_whole(rows);
    for (Entry& row : rows) row.part = keys_.part(row.ref, common);
    // Where one key ends and another continues with zeros, parts do not differ.
    auto differs = [&](const Entry& row) { return row.part != rows[0].part; };
    if (std::ranges::none_of(rows, differs)) return sort_whole(rows);
    sort_parts(rows, level);
  }

  void sort_whole(std::span<Entry> rows) {
    auto less = [&](const Entry& a, const Entry& b) {
      return keys_.less(a.ref, b.ref);
    };
    std::ranges::sort(rows, less);
    for (std::size_t i = 1; i < rows.size(); ++i)
      if (!less(rows[i - 1], rows[i])) return found_twice(rows[i].ref);
  }

  // Rows are looked at in order, so the first one stays.
  void found_twice(RowRef row) {
    if (!twice_) twice_ = row;
  }

  const Keys& keys_;
  std::optional<RowRef> twice_;
};

/// The rows in buckets, each of keys below those of the next one.
class Buckets {
 public:
  Buckets(const Keys& keys, int workers)
      : keys_(keys),
        workers_(std::max(1, workers)),
        begin_(common_beginning(keys, workers)) {
    choose_bounds();
    deal();
  }

  /// Sorts all of them. Writes their rows to `refs`; returns the first row in
  /// order whose key another row has too.
  std::optional<RowRef> sort(std::span<RowRef> refs) {
    std::vector<std::optional<RowRef>> twice(bounds_.size() + 1);
    // Buckets differ in size. Each is taken once, and what the threads write is
    // read when they have ended: the number alone needs no lock.
    std::atomic<std::size_t> next{0};
    in_ranges(workers_, workers_, [&](std::int64_t, std::int64_t) {
      EntrySort sort(keys_);
      for (std::size_t b = next++; b < twice.size(); b = next++) {
        std::span<Entry> rows = std::span(entries_).subspan(
            starts_[b], starts_[b + 1] - starts_[b]);
        twice[b] = sort.sort(rows);
        for (std::size_t i = 0; i < rows.size(); ++i)
          refs[starts_[b] + i] = rows[i].ref;
      }
    });
    for (const std::optional<RowRef>& found : twice)
      if (found) return found;
    return std::nullopt;
  }

 private:
  Entry entry(RowRef row) const { return {keys_.part(row, begin_), row}; }

  bool less(const Entry& a, const Entry& b) const {
    if (a.part != b.part) return a.part < b.part;
    return !keys_.integers() && keys_.less(a.ref, b.ref);
  }

  void choose_bounds() {
    auto rows = static_cast<std::size_t>(keys_.count());
    std::size_t buckets = std::min(kMostBuckets, rows / kBucketRows + 1);
    if (buckets == 1) return;
    std::size_t samples = buckets * kSamplesPerBucket;
    std::vector<Entry> sample;
    for (std::size_t i = 0; i < samples; ++i) {
      auto at = static_cast<std::int64_t>(i * rows / samples);
      keys_.each(at, at + 1, [&](std::int64_t, RowRef row) {
        sample.push_back(entry(row));
      });
    }
    std::ranges::sort(
        sample, [&](const Entry& a, const Entry& b) { return less(a, b); });
    for (std::size_t b = 1; b < buckets; ++b)
      bounds_.push_back(sample[b * kSamplesPerBucket]);
  }

  std::size_t bucket_of(const Entry& row) const {
    auto after = std::upper_bound(
        bounds_.begin(), bounds_.end(), row,
        [&](const Entry& a, const Entry& b) { return less(a, b); });
    return static_cast<std::size_t>(after - bounds_.begin());
  }

  /// Calls `act` for the part of each worker.
  template <class Act>
  void share_out(Act act) const {
    in_ranges(workers_, workers_, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t w = from; w < to; ++w)
        act(static_cast<std::size_t>(w), keys_.count() * w / workers_,
            keys_.count() * (w + 1) / workers_);
    });
  }

  void deal() {
    const std::size_t buckets = bounds_.size() + 1;
    std::vector<std::uint16_t> bucket(static_cast<std::size_t>(keys_.count()));
    // By worker and bucket: how many rows, then where the next of them goes.
    std::vector<std::vector<std::size_t>> places(
        static_cast<std::size_t>(workers_), std::vector<std::size_t>(buckets));
    share_out([&](std::size_t w, std::int64_t begin, std::int64_t end) {
      keys_.each(begin, end, [&](std::int64_t at, RowRef row) {
        std::size_t b = bucket_of(entry(row));
        bucket[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(b);
        ++places[w][b];
      });
    });
    std::size_t before = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
      starts_.push_back(before);
      for (std::vector<std::size_t>& of : places)
        before += std::exchange(of[b], before);
    }
    starts_.push_back(before);
    entries_.resize(before);
    share_out([&](std::size_t w, std::int64_t begin, std::int64_t end) {
      keys_.each(begin, end, [&](std::int64_t at, RowRef row) {
        std::size_t b = bucket[static_cast<std::size_t>(at)];
        entries_[places[w][b]++] = entry(row);
      });
    });
  }

  const Keys& keys_;
  const int workers_;
  const std::size_t begin_;    // of the parts that rows carry
  std::vector<Entry> bounds_;  // bucket b + 1 begins with bounds_[b]
  std::vector<std::size_t> starts_;
  std::vector<Entry> entries_;
};

[[noreturn]] void refuse_twice(const std::string& key,
                               const std::string& source) {
  throw Error(ErrorKind::source,
              {.code = "source.duplicate_key",
               .what = "two rows have the key " + key,
               .where = source,
               .why = "samples are numbered by the order of their keys, so "
                      "keys must differ",
               .next = "name a unique column as 'source.key'"});
}

}  // namespace

std::vector<RowRef> rows_by_key(const std::vector<ParsedBlock>& blocks,
                                const std::string& source, int workers) {
  Keys keys(blocks);
  if (keys.count() == 0) return {};
  std::vector<RowRef> refs(static_cast<std::size_t>(keys.count()));
  keys.each(0, keys.count(), [&](std::int64_t at, RowRef row) {
    refs[static_cast<std::size_t>(at)] = row;
  });
  auto less = [&](RowRef a, RowRef b) { return keys.less(a, b); };
  std::optional<RowRef> twice;
  if (std::ranges::is_sorted(refs, less)) {
    auto same = std::ranges::adjacent_find(
        refs, [&](RowRef a, RowRef b) { return !less(a, b); });
    if (same != refs.end()) twice = *same;
  } else {
    twice = Buckets(keys, workers).sort(refs);
  }
  if (twice) refuse_twice(keys.shown(*twice), source);
  return refs;
}

void refuse_left_out_twice(const LeftOutKeys& left_out,
                           const std::vector<ParsedBlock>& blocks,
                           const std::string& source) {
  if (left_out.twice()) refuse_twice(*left_out.twice(), source);
  if (left_out.empty()) return;
  std::optional<std::string> first;
  for (const ParsedBlock& block : blocks)
    for (std::int64_t row = 0; row < block.rows(); ++row) {
      if (!left_out.contains(block.keys, row)) continue;
      std::string shown = block.keys.shown(row);
      if (!first || shown_before(shown, *first)) first = std::move(shown);
    }
  if (first) refuse_twice(*first, source);
}

}  // namespace penstock
