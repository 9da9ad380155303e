#include "penstock/sources/files/row_slice.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/sources/blocks.h"

namespace penstock::files {
namespace {

Bytes part_of(const Bytes& bytes, std::size_t begin, std::size_t size,
              const std::shared_ptr<const void>& owner) {
  return Bytes::borrow(bytes.span().subspan(begin, size), owner);
}

/// Offsets that begin at 0, behind `first` that nobody reads.
template <class Offset>
Bytes offsets_of(const Column& column, std::int64_t begin, std::int64_t rows,
                 std::int64_t first) {
  Bytes offsets;
  offsets.resize(static_cast<std::size_t>(first + rows + 1) * sizeof(Offset));
  auto* to = offsets.mutable_data<Offset>();
  std::fill_n(to, first, Offset{0});
  const std::int64_t base = rows == 0 ? 0 : column.offset(begin);
  to[first] = 0;
  for (std::int64_t row = 1; row <= rows; ++row)
    to[first + row] = static_cast<Offset>(column.offset(begin + row) - base);
  return offsets;
}

template <std::size_t kWidth>
void append_fixed(const Column& from, std::span<const std::int64_t> rows,
                  Column& to) {
  const std::size_t at = to.values.size();
  to.values.resize(at + rows.size() * kWidth);
  std::byte* out = to.values.mutable_data<std::byte>() + at;
  const std::byte* in =
      from.values.data() + kWidth * static_cast<std::size_t>(from.first);
  for (std::int64_t row : rows) {
    std::memcpy(out, in + kWidth * static_cast<std::size_t>(row), kWidth);
    out += kWidth;
  }
  to.length += std::ssize(rows);
}

void append_numbers(const Column& from, std::span<const std::int64_t> rows,
                    Column& to) {
  switch (size_of(from.type.dtype)) {
    case 1:
      return append_fixed<1>(from, rows, to);
    case 2:
      return append_fixed<2>(from, rows, to);
    case 4:
      return append_fixed<4>(from, rows, to);
    default:
      return append_fixed<8>(from, rows, to);
  }
}

/// The last `rows` rows of `to` have the values of the rows `row_at(0)`, ... A
/// column without nulls has no bitmap at all; the first null makes one, whose
/// bits for all earlier rows are set. The bytes of a null are zeros, so that
/// equal columns have equal bytes.
template <class RowAt>
void take_nulls_of(const Column& from, std::int64_t rows, RowAt row_at,
                   Column& to) {
  const std::size_t had = to.validity.size();
  if (had == 0) {
    if (from.validity.size() == 0) return;
    std::int64_t at = 0;
    while (at < rows && from.valid(row_at(at))) ++at;
    if (at == rows) return;
  }
  to.validity.resize(static_cast<std::size_t>(to.length + 7) / 8);
  auto* bits = to.validity.mutable_data<std::uint8_t>();
  std::memset(bits + had, 0xff, to.validity.size() - had);
  const std::size_t width = width_of(to);
  const std::int64_t begin = to.length - rows;
  for (std::int64_t at = 0; at < rows; ++at) {
    const std::int64_t row = begin + at;
    const auto mask = static_cast<std::uint8_t>(1u << (row & 7));
    std::uint8_t& byte = bits[row >> 3];
    byte = static_cast<std::uint8_t>(byte | mask);
    if (from.valid(row_at(at))) continue;
    byte = static_cast<std::uint8_t>(byte & ~mask);
    std::memset(to.values.mutable_data<std::byte>() +
                    width * static_cast<std::size_t>(row),
                0, width);
  }
}

}  // namespace

void take_nulls(const Column& from, Column& to) {
  take_nulls_of(
      from, to.length, [](std::int64_t at) { return at; }, to);
}

// Arrow's layouts ("Arrow Columnar Format"): a bitmap numbers bits from the
// least significant one of each byte and cannot be cut within a byte, so a
// slice begins up to seven rows earlier, and `first` says how many of them to
// skip. All buffers of the slice then have these rows in front, offsets
// included. Offsets alone are copied, O(rows): they begin at zero again, so
// that the values can be cut to what is used.
Column slice_of(const Column& column, std::int64_t begin, std::int64_t rows,
                const std::shared_ptr<const void>& owner) {
  Column part;
  part.type = column.type;
  part.item = column.item;
  part.wide = column.wide;
  part.length = rows;
  const std::int64_t from = column.first + begin;
  part.first = from % 8;  // bits begin within a byte
  const auto in_bytes = static_cast<std::size_t>((part.first + rows + 7) / 8);
  if (column.validity.size() != 0)
    part.validity = part_of(column.validity, static_cast<std::size_t>(from / 8),
                            in_bytes, owner);
  switch (column.type.kind) {
    case ColumnKind::null:
      break;
    case ColumnKind::boolean:
      part.values = part_of(column.values, static_cast<std::size_t>(from / 8),
                            in_bytes, owner);
      break;
    case ColumnKind::utf8:
    case ColumnKind::binary:
    case ColumnKind::list: {
      part.offsets =
          column.wide
              ? offsets_of<std::int64_t>(column, begin, rows, part.first)
              : offsets_of<std::int32_t>(column, begin, rows, part.first);
      const std::int64_t first = rows == 0 ? 0 : column.offset(begin);
      const std::int64_t count =
          rows == 0 ? 0 : column.offset(begin + rows) - first;
      if (column.type.kind == ColumnKind::list)
        part.children.push_back(
            slice_of(column.children[0], first, count, owner));
      else
        part.values = part_of(column.values, static_cast<std::size_t>(first),
                              static_cast<std::size_t>(count), owner);
      break;
    }
    case ColumnKind::number:
    case ColumnKind::fixed:
    case ColumnKind::uuid:
    case ColumnKind::dictionary: {
      const std::size_t width = width_of(column);
      part.values = part_of(
          column.values, width * static_cast<std::size_t>(from - part.first),
          width * static_cast<std::size_t>(part.first + rows), owner);
      for (const Column& child : column.children)
        part.children.push_back(slice_of(child, 0, child.length, owner));
      break;
    }
  }
  return part;
}

Block slice_of(const std::shared_ptr<const Block>& block, std::int64_t begin,
               std::int64_t rows) {
  Block part;
  part.rows = rows;
  part.columns.reserve(block->columns.size());
  for (const Column& column : block->columns)
    part.columns.push_back(slice_of(column, begin, rows, block));
  // There may be as many as rows, and many slices.
  for (auto problem = std::ranges::lower_bound(block->problems, begin, {},
                                               &RowProblem::row);
       problem != block->problems.end() && problem->row < begin + rows;
       ++problem)
    part.problems.push_back(
        {problem->row - begin, problem->column, problem->why});
  return part;
}

bool is_plain(const Column& column) {
  return (column.type.kind == ColumnKind::number ||
          column.type.kind == ColumnKind::fixed) &&
         column.validity.size() == 0;
}

std::byte* place_of_rows(Column& to, const Shape& item, std::int64_t rows) {
  if (to.values.size() == 0) {
    to.item = item;
    to.length = rows;
    to.values.resize(width_of(to) * static_cast<std::size_t>(rows));
  }
  return to.item == item ? to.values.mutable_data<std::byte>() : nullptr;
}

void place_rows(const Column& from, std::span<const std::int64_t> rows,
                std::span<const std::size_t> places, std::byte* to) {
  const std::size_t width = width_of(from);
  const std::byte* in =
      from.values.data() + width * static_cast<std::size_t>(from.first);
  for (std::size_t at = 0; at < rows.size(); ++at)
    std::memcpy(to + width * places[at],
                in + width * static_cast<std::size_t>(rows[at]), width);
}

void append_rows(const Column& from, std::span<const std::int64_t> rows,
                 Column& to) {
  if (from.type.kind == ColumnKind::fixed && is_plain(from) &&
      to.validity.size() == 0) {
    to.item = from.item;
    const std::size_t width = width_of(from), at = to.values.size();
    to.values.resize(at + rows.size() * width);
    std::byte* out = to.values.mutable_data<std::byte>() + at;
    const std::byte* in =
        from.values.data() + width * static_cast<std::size_t>(from.first);
    for (std::int64_t row : rows) {
      std::memcpy(out, in + width * static_cast<std::size_t>(row), width);
      out += width;
    }
    to.length += std::ssize(rows);
    return;
  }
  if (from.type.kind == ColumnKind::number) {
    append_numbers(from, rows, to);
    take_nulls_of(
        from, std::ssize(rows),
        [&](std::int64_t at) { return rows[static_cast<std::size_t>(at)]; },
        to);
    return;
  }
  for (std::int64_t row : rows) to.append_from(from, row);
}

}  // namespace penstock::files
