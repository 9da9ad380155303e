#include "penstock/transforms/tokens/token_notes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "penstock/base/hash.h"

namespace penstock {
namespace {

constexpr std::size_t kMostUsed = 10;
/// Another one where what is saved means something else.
constexpr std::uint64_t kForm = 0x746f6b656e733033;  // "tokens03"

/// Ids beyond are not counted: no vocabulary is as large, and a stray id of 32
/// bits must not cost its number in memory.
constexpr std::uint32_t kMostCounted = std::uint32_t{1} << 22;

/// Of a document with fewer tokens it says nothing that it is there twice.
constexpr std::size_t kLeastToCompare = 2;

template <class Item>
void append(Bytes& to, const std::vector<Item>& items) {
  to.append_value(static_cast<std::uint64_t>(items.size()));
  to.append(items.data(), items.size() * sizeof(Item));
}

/// False where `from` is too short.
bool take(std::span<const std::byte>& from, void* to, std::size_t bytes) {
  if (from.size() < bytes) return false;
  if (bytes > 0) std::memcpy(to, from.data(), bytes);
  from = from.subspan(bytes);
  return true;
}

template <class Item>
bool take(std::span<const std::byte>& from, std::vector<Item>& items) {
  std::uint64_t count = 0;
  if (!take(from, &count, sizeof(count)) || count > from.size() / sizeof(Item))
    return false;
  items.resize(count);
  return take(from, items.data(), count * sizeof(Item));
}

Json rounded(std::int64_t sum, std::int64_t count) {
  if (count == 0) return {};
  return static_cast<double>(sum * 1000 / count) / 1000;
}

}  // namespace

void TokenNotes::add(const DocumentNote& of) {
  ++sums_.documents;
  sums_.tokens += of.tokens;
  sums_.bytes += of.bytes;
  sums_.characters += of.characters;
  sums_.empty += of.tokens == 0 ? 1 : 0;
  sums_.cut += of.cut ? 1 : 0;
  add_targets(of.targets);
  sums_.invalid += of.invalid_utf8 ? 1 : 0;
  sums_.longest = std::max<std::int64_t>(sums_.longest, of.tokens);
  ++sums_.lengths[std::bit_width(static_cast<std::uint32_t>(of.tokens))];
}

template <class Token>
void TokenUses::count(std::span<const Token> ids) {
  if (ids.empty()) return;
  const std::size_t most = *std::ranges::max_element(ids);
  if (most >= kMostCounted) {
    for (Token id : ids)
      if (id < kMostCounted) count(std::span<const Token>(&id, 1));
    return;
  }
  if (most >= times_.size()) times_.resize(std::bit_ceil(most + 1), 0);
  for (Token id : ids) ++times_[id];
}
template void TokenUses::count(std::span<const std::uint16_t>);
template void TokenUses::count(std::span<const std::uint32_t>);

std::vector<TokenUses::Use> TokenUses::take() {
  constexpr std::size_t kTogether = 16;  // mostly none of them is there
  std::vector<Use> uses;
  for (std::size_t first = 0; first < times_.size(); first += kTogether) {
    const std::size_t end = std::min(first + kTogether, times_.size());
    std::uint32_t some = 0;
    for (std::size_t id = first; id < end; ++id) some |= times_[id];
    for (std::size_t id = first; some != 0 && id < end; ++id)
      if (const std::uint32_t times = std::exchange(times_[id], 0); times != 0)
        uses.push_back({static_cast<std::uint32_t>(id), times});
  }
  return uses;
}

void TokenNotes::add_uses(std::span<const TokenUses::Use> uses) {
  for (const TokenUses::Use& use : uses) {
    if (use.id >= uses_.size())
      uses_.resize(std::max(use.id + std::size_t{1},
                            static_cast<std::size_t>(std::clamp<std::int64_t>(
                                vocab_size_, 0, kMostCounted))),
                   0);
    uses_[use.id] += use.times;
  }
}

void TokenNotes::add_few() {
  add_uses(few_);
  few_.clear();
}

template <class Token>
void TokenNotes::add(const DocumentNote& of, std::span<const Token> ids) {
  add(of);
  if (ids.size() >= kLeastToCompare)
    documents_.push_back(hash64(std::as_bytes(ids)));
}
template void TokenNotes::add(const DocumentNote&,
                              std::span<const std::uint16_t>);
template void TokenNotes::add(const DocumentNote&,
                              std::span<const std::uint32_t>);

void TokenNotes::add_targets(std::int64_t targets) {
  if (targets >= 0)
    sums_.targets = std::max<std::int64_t>(sums_.targets, 0) + targets;
}

void TokenNotes::merge(FieldNotes& other) {
  auto& more = static_cast<TokenNotes&>(other);
  sums_.documents += more.sums_.documents;
  sums_.tokens += more.sums_.tokens;
  sums_.bytes += more.sums_.bytes;
  sums_.characters += more.sums_.characters;
  sums_.empty += more.sums_.empty;
  sums_.cut += more.sums_.cut;
  add_targets(more.sums_.targets);
  sums_.invalid += more.sums_.invalid;
  sums_.longest = std::max(sums_.longest, more.sums_.longest);
  for (std::size_t i = 0; i < sums_.lengths.size(); ++i)
    sums_.lengths[i] += more.sums_.lengths[i];
  add_few();
  add_uses(more.few_);
  if (uses_.size() < more.uses_.size()) uses_.swap(more.uses_);
  for (std::size_t id = 0; id < more.uses_.size(); ++id)
    uses_[id] += more.uses_[id];
  documents_.insert(documents_.end(), more.documents_.begin(),
                    more.documents_.end());
}

Bytes TokenNotes::saved() const {
  Bytes bytes;
  bytes.append_value(kForm);
  bytes.append_value(vocab_size_);
  bytes.append(&sums_, sizeof(sums_));
  // Of a part most ids are not there; an id that comes very often stands twice.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::vector<TokenUses::Use> uses = few_;
  for (std::size_t id = 0; id < uses_.size(); ++id)
    for (std::uint64_t left = uses_[id]; left > 0;) {
      const std::uint64_t times = std::min(left, kMost);
      uses.push_back(
          {static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(times)});
      left -= times;
    }
  append(bytes, uses);
  append(bytes, documents_);
  return bytes;
}

std::unique_ptr<TokenNotes> TokenNotes::of(std::span<const std::byte> saved) {
  auto notes = std::make_unique<TokenNotes>(0);
  std::uint64_t form = 0;
  const bool whole = take(saved, &form, sizeof(form)) && form == kForm &&
                     take(saved, &notes->vocab_size_, sizeof(vocab_size_)) &&
                     take(saved, &notes->sums_, sizeof(sums_)) &&
                     take(saved, notes->few_) &&
                     take(saved, notes->documents_) && saved.empty();
  return whole ? std::move(notes) : nullptr;
}

void TokenNotes::write_uses(Json& json) const {
  std::vector<std::uint32_t> ids;
  for (std::size_t id = 0; id < uses_.size(); ++id)
    if (uses_[id] > 0) ids.push_back(static_cast<std::uint32_t>(id));
  if (vocab_size_ > 0 && vocab_size_ <= kMostCounted)
    json["unused"] = vocab_size_ - std::ssize(ids);
  const std::size_t shown = std::min(kMostUsed, ids.size());
  std::ranges::partial_sort(
      ids, ids.begin() + static_cast<std::ptrdiff_t>(shown),
      [&](std::uint32_t a, std::uint32_t b) {
        return uses_[a] != uses_[b] ? uses_[a] > uses_[b] : a < b;
      });
  json["most_used"] = Json(Json::Array{});
  for (std::size_t i = 0; i < shown; ++i) {
    Json use(Json::Array{});
    use.push_back(static_cast<std::int64_t>(ids[i]));
    use.push_back(static_cast<std::int64_t>(uses_[ids[i]]));
    json["most_used"].push_back(std::move(use));
  }
}

Json TokenNotes::json() {
  add_few();
  Json json;
  json["documents"] = sums_.documents;
  json["tokens"] = sums_.tokens;
  json["longest"] = sums_.longest;
  if (sums_.targets >= 0) json["targets"] = sums_.targets;
  json["empty"] = sums_.empty;
  json["cut"] = sums_.cut;
  json["invalid_utf8"] = sums_.invalid;
  if (sums_.bytes > 0) {
    json["text_bytes"] = sums_.bytes;
    json["characters"] = sums_.characters;
    json["characters_per_token"] = rounded(sums_.characters, sums_.tokens);
  }
  std::ranges::sort(documents_);
  const auto first = std::unique(documents_.begin(), documents_.end());
  json["duplicates"] =
      static_cast<std::int64_t>(std::distance(first, documents_.end()));
  documents_.erase(first, documents_.end());
  write_uses(json);
  json["lengths"] = Json(Json::Array{});
  for (std::size_t i = 0; i < sums_.lengths.size(); ++i) {
    if (sums_.lengths[i] == 0) continue;
    Json bucket(Json::Array{});
    bucket.push_back(i == 0 ? std::int64_t{0} : std::int64_t{1} << (i - 1));
    bucket.push_back(sums_.lengths[i]);
    json["lengths"].push_back(std::move(bucket));
  }
  return json;
}

}  // namespace penstock
