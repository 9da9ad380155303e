#include "penstock/sources/source.h"

#include <algorithm>
#include <numeric>

#include "penstock/base/error.h"

namespace penstock {

std::string ReadRequest::shown(std::int64_t row) const {
  if (keys != nullptr) return "key " + keys->shown(row);
  return "position " + std::to_string(positions[static_cast<std::size_t>(row)]);
}

std::int64_t ChunkMap::chunk_of(std::int64_t position) const {
  return std::ranges::upper_bound(ends, position) - ends.begin();
}

std::string_view RowNames::of(std::int64_t position) {
  auto part = std::ranges::upper_bound(parts_, position, {}, &NamedRows::end);
  position_ = position;
  if (part != parts_.begin() && part != parts_.end())
    position_ -= std::prev(part)->end;
  const std::string_view number(reinterpret_cast<const char*>(&position_),
                                sizeof(position_));
  if (part == parts_.end()) return number;
  name_ = part->name;
  name_ += '\0';  // no name holds one
  name_ += number;
  return name_;
}

// The size of rows is found by reading: a few at first, then as many as those
// suggest. A block that is too large all the same is read again, in parts.
void Reader::scan(const Partition& partition, BlockLimit limit,
                  const BlockSink& sink) {
  PENSTOCK_ASSERT(limit.rows > 0, "a block holds at least one row");
  constexpr std::int64_t kGrowth = 8;
  KeyList keys;
  Block block;
  std::vector<std::int64_t> positions;
  std::int64_t most = 1;
  for (std::int64_t at = partition.first; at < partition.end;) {
    positions.resize(
        static_cast<std::size_t>(std::min(most, partition.end - at)));
    std::iota(positions.begin(), positions.end(), at);
    read(ReadRequest(positions), block);
    const std::size_t bytes = block.bytes() + 1;
    if (bytes > limit.bytes && positions.size() > 1) {
      most = std::ssize(positions) / 2;
      continue;
    }
    auto fit = static_cast<std::int64_t>(limit.bytes / bytes);  // of such ones
    most = std::min({limit.rows, kGrowth * most,
                     std::max<std::int64_t>(1, fit * std::ssize(positions))});
    at += std::ssize(positions);
    keys.clear();
    for (std::int64_t position : positions) keys.append_integer(position);
    if (!sink(keys, block)) return;
  }
}

std::vector<Partition> Source::partitions(int readers) {
  PENSTOCK_ASSERT(abilities().by_position,
                  "a source without positions makes its own partitions");
  const std::int64_t rows = count().rows.value_or(0);
  const std::int64_t parts =
      std::clamp<std::int64_t>(readers, 1, std::max<std::int64_t>(rows, 1));
  const ChunkMap* map = chunks();
  std::vector<Partition> partitions;
  std::int64_t first = 0;
  for (std::int64_t part = 1; part <= parts; ++part) {
    std::int64_t end = rows / parts * part + rows % parts * part / parts;
    if (map != nullptr && end < rows && end > first)
      end = map->ends[static_cast<std::size_t>(map->chunk_of(end - 1))];
    if (end <= first && !(part == parts && partitions.empty())) continue;
    partitions.push_back(
        {.range = "rows " + std::to_string(first) + ".." + std::to_string(end),
         .index = std::ssize(partitions),
         .first = first,
         .end = end});
    first = end;
  }
  return partitions;
}

}  // namespace penstock
