#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/json.h"

namespace penstock {

/// A column of a block that is to be written: of a list, what its numbers are.
struct BlockColumn {
  ColumnType type;
  Dtype numbers = Dtype::float64;
};

inline ColumnType type_in(ColumnType type) { return type; }
template <class Part>
ColumnType type_in(const Part& part) {
  return part.type;
}
/// Nullopt where the part does not say: the first row decides then.
template <class Part>
std::optional<ColumnType> numbers_in(const Part& part) {
  if constexpr (requires { part.numbers; })
    return ColumnType::number(part.numbers);
  else
    return std::nullopt;
}

template <class Part>
std::vector<ColumnType> types_of(const std::vector<Part>& parts) {
  std::vector<ColumnType> types;
  for (const Part& part : parts) types.push_back(part.type);
  return types;
}

template <class Part>
Json names_of(const std::vector<Part>& parts) {
  Json names(Json::Array{});
  for (const Part& part : parts) names.push_back(part.name);
  return names;
}

/// An empty block with a column for each of `parts`, types or things with a
/// `type`.
template <class Part>
Block block_of(const std::vector<Part>& parts) {
  Block block;
  block.columns.resize(parts.size());
  for (std::size_t at = 0; at < parts.size(); ++at) {
    Column& column = block.columns[at];
    column.type = type_in(parts[at]);
    const std::optional<ColumnType> numbers = numbers_in(parts[at]);
    if (column.type.kind == ColumnKind::list && numbers)
      column.children.emplace_back().type = *numbers;
  }
  return block;
}

/// True when the block has just these columns.
template <class Part>
bool is_block_of(const std::vector<Part>& parts, const Block& block) {
  if (block.columns.size() != parts.size()) return false;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const Column& column = block.columns[at];
    if (column.type != type_in(parts[at])) return false;
    const std::optional<ColumnType> numbers = numbers_in(parts[at]);
    if (column.type.kind == ColumnKind::list && numbers &&
        (column.children.size() != 1 || column.children[0].type != *numbers))
      return false;
  }
  return true;
}

/// As block_of(), in the memory of a block that was used before, where that is
/// one of the same columns that owns them.
template <class Part>
Block block_in(Block used, const std::vector<Part>& parts) {
  auto kept = [](const Column& column) {
    const ColumnKind kind = column.type.kind;
    return (kind == ColumnKind::number || kind == ColumnKind::fixed ||
            kind == ColumnKind::utf8 || kind == ColumnKind::binary) &&
           column.wide && column.values.owned();
  };
  if (!is_block_of(parts, used) || !std::ranges::all_of(used.columns, kept))
    return block_of(parts);
  used.clear();
  for (Column& column : used.columns) column.item.clear();
  return used;
}

/// What a block of these has.
template <class Part>
std::vector<BlockColumn> block_columns(const std::vector<Part>& parts) {
  std::vector<BlockColumn> columns;
  for (const Part& part : parts)
    columns.push_back(
        {.type = type_in(part),
         .numbers = numbers_in(part).value_or(ColumnType::float64).dtype});
  return columns;
}

/// The bytes of a row of numbers, a tensor or a uuid.
inline std::size_t width_of(const Column& column) {
  if (column.type.kind == ColumnKind::uuid) return 16;
  std::size_t width = size_of(column.type.dtype);
  if (column.type.kind == ColumnKind::fixed)
    width *= static_cast<std::size_t>(elements_of(column.item));
  return width;
}

/// How much memory the columns of a block took, to give the next one as much.
class BlockCapacity {
 public:
  void measure(const Block& block) {
    sizes_.clear();
    for (const Column& column : block.columns)
      sizes_.push_back({column.validity.size(), column.offsets.size(),
                        column.values.size()});
  }
  void make(Block& block) const {
    for (std::size_t at = 0; at < sizes_.size(); ++at) {
      Column& column = block.columns[at];
      column.validity.resize(sizes_[at][0]);
      column.offsets.resize(sizes_[at][1]);
      column.values.resize(sizes_[at][2]);
      column.clear();
    }
  }

 private:
  std::vector<std::array<std::size_t, 3>> sizes_;
};

}  // namespace penstock
