#include "penstock/base/block.h"

namespace penstock {

std::string_view name_of(ColumnType type) {
  static constexpr std::string_view kNames[] = {
      "boolean", "int64", "float64", "text", "json", "uuid", "list"};
  return kNames[static_cast<std::size_t>(type)];
}

bool ColumnData::valid(std::int64_t row) const {
  if (validity.size() == 0) return true;
  auto byte = static_cast<unsigned>(
      validity.data()[static_cast<std::size_t>(row >> 3)]);
  return ((byte >> (row & 7)) & 1u) != 0;
}

std::string_view ColumnData::text(std::int64_t row) const {
  std::span<const std::int64_t> at = offsets.as<std::int64_t>();
  auto i = static_cast<std::size_t>(row);
  return {reinterpret_cast<const char*>(values.data()) + at[i],
          static_cast<std::size_t>(at[i + 1] - at[i])};
}

// The bitmap comes into being with the first null: most columns have none.
void ColumnData::append_valid(bool valid) {
  auto row = static_cast<std::size_t>(length);
  if (!valid && validity.size() == 0 && row > 0) {
    validity.resize((row + 7) / 8);
    std::memset(validity.mutable_data<std::byte>(), 0xff, validity.size());
  }
  if (!valid || validity.size() != 0) {
    if (row / 8 == validity.size()) validity.append_value(std::uint8_t{0});
    auto* bits = validity.mutable_data<std::uint8_t>();
    auto bit = static_cast<std::uint8_t>(1u << (row & 7));
    if (valid)
      bits[row / 8] = static_cast<std::uint8_t>(bits[row / 8] | bit);
    else
      bits[row / 8] = static_cast<std::uint8_t>(bits[row / 8] & ~bit);
  }
  ++length;
}

void ColumnData::append_null() {
  switch (type) {
    case ColumnType::boolean:
      values.append_value(std::uint8_t{0});
      break;
    case ColumnType::int64:
      values.append_value(std::int64_t{0});
      break;
    case ColumnType::float64:
      values.append_value(0.0);
      break;
    case ColumnType::uuid: {
      static constexpr std::byte kNone[16] = {};
      values.append(kNone, sizeof(kNone));
      break;
    }
    default:
      if (offsets.size() == 0) offsets.append_value(std::int64_t{0});
      offsets.append_value(static_cast<std::int64_t>(values.size()));
      break;
  }
  append_valid(false);
}

void ColumnData::append_text(std::string_view text) {
  if (offsets.size() == 0) offsets.append_value(std::int64_t{0});
  values.append(text.data(), text.size());
  offsets.append_value(static_cast<std::int64_t>(values.size()));
  append_valid(true);
}

void ColumnData::append_float64(double value) {
  values.append_value(value);
  append_valid(true);
}

void ColumnData::append_int64(std::int64_t value) {
  values.append_value(value);
  append_valid(true);
}

void ColumnData::append_boolean(bool value) {
  values.append_value(static_cast<std::uint8_t>(value));
  append_valid(true);
}

void ColumnData::append_uuid(const std::byte* sixteen) {
  values.append(sixteen, 16);
  append_valid(true);
}

void ColumnData::clear() {
  length = 0;
  validity.clear();
  offsets.clear();
  values.clear();
  for (ColumnData& child : children) child.clear();
}

void Block::clear() {
  rows = 0;
  problems.clear();
  for (ColumnData& column : columns) column.clear();
}

std::size_t Block::bytes() const {
  std::size_t sum = 0;
  for (const ColumnData& column : columns)
    sum +=
        column.validity.size() + column.offsets.size() + column.values.size();
  return sum;
}

}  // namespace penstock
