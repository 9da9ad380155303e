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

// While each part has one row, `ends_` stays empty: the end of part i is i + 1.
// The first part of another size fills it for all before, O(n) once. For a
// folder of ten million pictures that saves 80 MB.
void RowParts::add(std::string_view name, std::int64_t end) {
  const bool one_each = ends_.empty() && end == std::ssize(name_ends_) + 1;
  if (ends_.empty() && !one_each) {
    ends_.resize(size());
    std::iota(ends_.begin(), ends_.end(), 1);
  }
  if (!one_each) ends_.push_back(end);
  names_.append(name).push_back('\0');
  name_ends_.push_back(names_.size());
}

void RowParts::reserve(std::size_t parts, std::size_t bytes) {
  name_ends_.reserve(parts);
  names_.reserve(bytes + parts);
}

void RowParts::add_single(std::string_view names,
                          std::span<const std::uint32_t> sizes) {
  PENSTOCK_ASSERT(ends_.empty(), "each part has one row");
  std::size_t end = names_.size();
  names_.append(names);
  for (std::uint32_t size : sizes) name_ends_.push_back(end += size + 1);
  PENSTOCK_ASSERT(end == names_.size(), "each name has its bytes");
}

std::string_view RowParts::name(std::size_t part) const {
  const std::string_view all = names(part, part + 1);
  return all.substr(0, all.size() - 1);
}

std::string_view RowParts::names(std::size_t from, std::size_t to) const {
  const std::size_t begin = begin_of_name(from);
  return std::string_view(names_).substr(begin, begin_of_name(to) - begin);
}

std::size_t RowParts::part_of(std::int64_t position) const {
  if (!ends_.empty())
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, position) -
                                    ends_.begin());
  return std::min(static_cast<std::size_t>(position), size());
}

std::string_view RowNames::of(std::int64_t position) {
  const std::size_t part = parts_ == nullptr ? 0 : parts_->part_of(position);
  const bool in_part = parts_ != nullptr && part < parts_->size();
  position_ = position - (in_part ? parts_->begin(part) : 0);
  const std::string_view number(reinterpret_cast<const char*>(&position_),
                                sizeof(position_));
  if (!in_part) return number;
  name_ = parts_->name(part);
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

// rows / parts * part + rows % parts * part / parts is floor(rows * part /
// parts) without the product, which could overflow. A border is then moved to
// the end of its chunk, so that no chunk is decoded by two readers; parts that
// become empty in this way are left out, but at least one part remains.
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
