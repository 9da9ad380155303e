#include "penstock/base/block.h"

#include "penstock/base/error.h"
#include "penstock/base/half.h"
#include "penstock/base/with_number.h"

namespace penstock {
namespace {

bool bit(const Bytes& bits, std::int64_t at) {
  auto byte =
      static_cast<unsigned>(bits.data()[static_cast<std::size_t>(at >> 3)]);
  return ((byte >> (at & 7)) & 1u) != 0;
}

// Bits are numbered as in Arrow: the least significant bit of a byte is first.
// Bits past the last one have no meaning.
void set_bit(Bytes& bits, std::int64_t at, bool value) {
  if (static_cast<std::size_t>(at >> 3) == bits.size())
    bits.append_value(std::uint8_t{0});
  auto& byte = bits.mutable_data<std::uint8_t>()[at >> 3];
  auto mask = static_cast<std::uint8_t>(1u << (at & 7));
  byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
}

}  // namespace

std::string_view name_of(ColumnType type) {
  static constexpr std::string_view kNames[] = {
      "null", "boolean", "number",     "text", "binary",
      "list", "tensor",  "dictionary", "uuid"};
  if (type.kind == ColumnKind::number) return name_of(type.dtype);
  if (type == ColumnType::json) return "json";
  return kNames[static_cast<std::size_t>(type.kind)];
}

bool Column::valid(std::int64_t row) const {
  if (type.kind == ColumnKind::null) return false;
  return validity.size() == 0 || bit(validity, first + row);
}

std::int64_t Column::offset(std::int64_t row) const {
  auto at = static_cast<std::size_t>(first + row);
  return wide ? offsets.as<std::int64_t>()[at] : offsets.as<std::int32_t>()[at];
}

std::string_view Column::text(std::int64_t row) const {
  std::int64_t begin = offset(row);
  return {reinterpret_cast<const char*>(values.data()) + begin,
          static_cast<std::size_t>(offset(row + 1) - begin)};
}

bool Column::boolean(std::int64_t row) const {
  return bit(values, first + row);
}

double Column::as_float64(std::int64_t row) const {
  if (type.kind == ColumnKind::boolean) return boolean(row);
  if (is_half(type.dtype))
    return from_half(type.dtype, number<std::uint16_t>(row));
  return with_number(type.dtype, [&]<class Number>(Typed<Number>) {
    return static_cast<double>(number<Number>(row));
  });
}

std::int64_t Column::as_int64(std::int64_t row) const {
  if (type.kind == ColumnKind::boolean) return boolean(row);
  if (is_half(type.dtype))
    return static_cast<std::int64_t>(
        from_half(type.dtype, number<std::uint16_t>(row)));
  return with_number(type.dtype, [&]<class Number>(Typed<Number>) {
    return static_cast<std::int64_t>(number<Number>(row));
  });
}

// The bitmap is created with the first null: most columns have none.
void Column::append_valid(bool valid) {
  if (!valid && validity.size() == 0 && length > 0) {
    validity.resize(static_cast<std::size_t>(length + 7) / 8);
    std::memset(validity.mutable_data<std::byte>(), 0xff, validity.size());
  }
  if (!valid || validity.size() != 0) set_bit(validity, length, valid);
  ++length;
}

void Column::start_offsets() {
  if (offsets.size() == 0) offsets.append_value(std::int64_t{0});
}

void Column::append_null() {
  switch (type.kind) {
    case ColumnKind::null:
      break;
    case ColumnKind::boolean:
      set_bit(values, length, false);
      break;
    case ColumnKind::utf8:
    case ColumnKind::binary:
    case ColumnKind::list:
      start_offsets();
      offsets.append_value(type.kind == ColumnKind::list
                               ? children[0].length
                               : static_cast<std::int64_t>(values.size()));
      break;
    case ColumnKind::number:
    case ColumnKind::fixed:
    case ColumnKind::dictionary:
    case ColumnKind::uuid: {
      std::size_t row = type.kind == ColumnKind::uuid
                            ? 16
                            : size_of(type.dtype) *
                                  static_cast<std::size_t>(elements_of(item));
      std::size_t at = values.size();
      values.resize(at + row);
      std::memset(values.mutable_data<std::byte>() + at, 0, row);
      break;
    }
  }
  append_valid(false);
}

void Column::append_text(std::string_view text) {
  start_offsets();
  values.append(text.data(), text.size());
  offsets.append_value(static_cast<std::int64_t>(values.size()));
  append_valid(true);
}

void Column::append_list() {
  start_offsets();
  offsets.append_value(children[0].length);
  append_valid(true);
}

void Column::append_boolean(bool value) {
  set_bit(values, length, value);
  append_valid(true);
}

void Column::append_uuid(const std::byte* sixteen) {
  values.append(sixteen, 16);
  append_valid(true);
}

void Column::append_from(const Column& from, std::int64_t row) {
  PENSTOCK_ASSERT(type == from.type && type.kind != ColumnKind::dictionary,
                  "a row comes from a column of the same type");
  if (type.kind == ColumnKind::list && children.empty())
    children.emplace_back().type = from.children[0].type;
  if (type.kind == ColumnKind::fixed) item = from.item;
  if (!from.valid(row)) return append_null();
  switch (type.kind) {
    case ColumnKind::boolean:
      return append_boolean(from.boolean(row));
    case ColumnKind::utf8:
    case ColumnKind::binary:
      return append_text(from.text(row));
    case ColumnKind::uuid:
      return append_uuid(from.uuid(row));
    case ColumnKind::list:
      for (std::int64_t at = from.offset(row); at < from.offset(row + 1); ++at)
        children[0].append_from(from.children[0], at);
      return append_list();
    default:
      break;
  }
  std::size_t width =
      size_of(type.dtype) * static_cast<std::size_t>(elements_of(item));
  values.append(
      from.values.data() + width * static_cast<std::size_t>(from.first + row),
      width);
  append_valid(true);
}

void Column::clear() {
  first = 0;
  length = 0;
  validity.clear();
  offsets.clear();
  values.clear();
  for (Column& child : children) child.clear();
}

std::size_t Column::bytes() const {
  std::size_t sum = validity.size() + offsets.size() + values.size();
  for (const Column& child : children) sum += child.bytes();
  return sum;
}

void Block::clear() {
  rows = 0;
  problems.clear();
  for (Column& column : columns) column.clear();
  owner.reset();
}

std::size_t Block::bytes() const {
  std::size_t sum = 0;
  for (const Column& column : columns) sum += column.bytes();
  return sum;
}

}  // namespace penstock
