#include "penstock/dataset/indexed/sample_reader.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "penstock/base/host_limits.h"

namespace penstock {

void reading_order(std::span<const SampleId> ids,
                   std::vector<std::size_t>& order, SampleId first) {
  order.clear();
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= first) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return ids[i]; });
}

int most_readers(const Source& source) {
  constexpr int kAny = std::numeric_limits<int>::max();
  if (source.abilities().global_lock) return 1;
  const std::size_t each =
      source.chunks() != nullptr ? source.chunks()->reader.by_position : 0;
  if (each == 0) return kAny;
  const auto free = read_host_limits().memory_free;
  if (!free) return kAny;
  return static_cast<int>(
      std::clamp<std::size_t>(*free / 4 / each, 1, std::size_t{kAny}));
}

SampleReader::SampleReader(Source& source, const KeyList* keys,
                           StageMeter* meter)
    : source_(source), all_keys_(keys), meter_(meter) {
  if (keys != nullptr) keys_ = KeyList(keys->type());
}

ReadRequest SampleReader::request(std::span<const SampleId> ids) {
  if (all_keys_ == nullptr) return ids;
  keys_.clear();
  for (SampleId id : ids) keys_.append(*all_keys_, id);
  if (source_.abilities().by_key) return keys_;
  // Of rows by position, the keys are positions.
  positions_.clear();
  for (std::int64_t at = 0; at < keys_.size(); ++at)
    positions_.push_back(keys_.integer(at));
  return positions_;
}

void SampleReader::read(std::span<const SampleId> ids, Block& out) {
  if (reader_ == nullptr) reader_ = open_checked_reader(source_);
  ReadRequest wanted = request(ids);
  std::optional<BusyScope> busy;
  if (meter_ != nullptr) busy.emplace(*meter_);
  reader_->read(wanted, out);
  if (meter_ == nullptr) return;
  meter_->add_items(out.rows, static_cast<std::int64_t>(out.bytes()));
  meter_->add_calls(1);
}

}  // namespace penstock
