#include "penstock/sources/hdf5/values.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/half.h"
#include "penstock/base/utf8.h"

namespace penstock::hdf5 {
namespace {

using Is = ValueType::Is;

bool is_number(const ValueType& type) {
  return type.is == Is::integer || type.is == Is::floating ||
         type.is == Is::boolean;
}

bool is_half(const ValueType& type) {
  return type.is == Is::floating && type.bytes == 2;
}

/// Elements of `width` bytes that lie `stride` bytes apart, as little-endian
/// ones side by side.
template <std::size_t kWidth>
void gather(const std::byte* from, std::int64_t stride, std::int64_t count,
            bool big, std::byte* to) {
  for (std::int64_t at = 0; at < count; ++at, from += stride, to += kWidth) {
    std::byte value[kWidth];
    std::memcpy(value, from, kWidth);
    if (big) std::reverse(value, value + kWidth);
    std::memcpy(to, value, kWidth);
  }
}

void gather(const ValueType& type, const std::byte* from, std::int64_t stride,
            std::int64_t count, std::byte* to) {
  switch (type.bytes) {
    case 1:
      return gather<1>(from, stride, count, false, to);
    case 2:
      return gather<2>(from, stride, count, type.big, to);
    case 4:
      return gather<4>(from, stride, count, type.big, to);
    default:
      return gather<8>(from, stride, count, type.big, to);
  }
}

/// `count` numbers from `at` on in each element of `stride` bytes.
Bytes plain_numbers(const ValueType& type, Bytes&& raw, std::int64_t at,
                    std::int64_t stride, std::int64_t count,
                    std::int64_t each = 1) {
  const auto width = static_cast<std::size_t>(type.bytes);
  const bool dense = stride == type.bytes * each && at == 0;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(raw.data()) % width == 0;
  if (dense && aligned && !type.big) return std::move(raw);
  Bytes out;
  out.resize(static_cast<std::size_t>(count * each) * width);
  auto* to = out.mutable_data<std::byte>();
  if (dense) {
    gather(type, raw.data(), type.bytes, count * each, to);
  } else {
    for (std::int64_t element = 0; element < count; ++element)
      gather(type, raw.data() + element * stride + at, type.bytes, each,
             to + static_cast<std::size_t>(element * each) * width);
  }
  return out;
}

/// Numbers of 16 bits as float32.
Bytes widened(const ValueType& type, const Bytes& halves) {
  const std::span<const std::uint16_t> from = halves.as<std::uint16_t>();
  const Dtype dtype = dtype_of(type);
  Bytes floats;
  floats.resize(from.size() * sizeof(float));
  auto* to = floats.mutable_data<float>();
  for (std::size_t at = 0; at < from.size(); ++at)
    to[at] = from_half(dtype, from[at]);
  return floats;
}

// HDF5 marks text as ASCII or UTF-8 (H5T_CSET), and writers set the mark
// carelessly. So it is ignored: what is valid UTF-8 is text.
void append_text(Column& column, std::string_view text, std::size_t at,
                 std::vector<RowProblem>& problems) {
  if (is_utf8(text)) return column.append_text(text);
  problems.push_back({column.length, at, "holds " + shown_text(text)});
  column.append_null();
}

/// Up to its padding: zeros, or blanks for a type that is padded so.
std::string_view trimmed(const std::byte* at, const ValueType& type) {
  std::string_view text(reinterpret_cast<const char*>(at),
                        static_cast<std::size_t>(type.bytes));
  text = text.substr(0, text.find('\0'));
  while (type.blanks && text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

void lists(const ValuePlan& plan, const Bytes& raw, std::int64_t rows,
           std::int64_t stride, const IndexedFile& file, GlobalHeap& heap,
           std::size_t at, Column& column, std::vector<RowProblem>& problems) {
  const bool text = plan.type.is == Is::texts;
  const ValueType* inner = text ? nullptr : plan.type.inner.data();
  if (!text)
    column.children.emplace_back().type = ColumnType::number(plan.numbers);
  std::span<const char> found;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string why = heap.find(file, raw.data() + row * stride + plan.at,
                                      text ? 1 : inner->bytes, found);
    if (!why.empty()) {
      problems.push_back({row, at, why});
      column.append_null();
      continue;
    }
    if (text) {
      std::string_view value(found.data(), found.size());
      append_text(column, value.substr(0, value.find('\0')), at, problems);
      continue;
    }
    Column& child = column.children[0];
    const std::int64_t count = std::ssize(found) / inner->bytes;
    Bytes borrowed = Bytes::borrow(std::as_bytes(found), nullptr);
    const Bytes plain =
        plain_numbers(*inner, std::move(borrowed), 0, inner->bytes, count);
    child.values.append(plain.data(), plain.size());
    child.length += count;
    column.append_list();
  }
}

void booleans(const Bytes& raw, std::int64_t at, std::int64_t rows,
              std::int64_t stride, Column& column) {
  for (std::int64_t row = 0; row < rows; ++row)
    column.append_boolean(raw.data()[row * stride + at] != std::byte{0});
}

const char* kOther = "choose another column";

}  // namespace

Dtype dtype_of(const ValueType& type) {
  if (type.is == Is::boolean) return Dtype::boolean;
  Dtype dtype = Dtype::float64;
  dtype_from(type.shown(), dtype);
  return dtype;
}

// One data set gives as many columns as its type has leaves: members of
// compounds become "name.member", nested ones at the sum of their offsets, and
// an array type adds its dimensions behind those of the row. `at` is the offset
// of a leaf in a value of the data set, and readers step from value to value by
// the size of the whole compound.
void plan_values(const std::string& name, const ValueType& type,
                 const std::vector<std::int64_t>& item,
                 std::vector<ValuePlan>& plans,
                 std::vector<LeftOutColumn>& refused) {
  ValuePlan plan{.name = name, .at = 0, .type = type, .item = item};
  if (type.is == Is::compound) {
    const std::size_t first = plans.size();
    for (std::size_t m = 0; m < type.members.size(); ++m) {
      const std::size_t begin = plans.size();
      plan_values(name + "." + type.members[m].first, type.inner[m], item,
                  plans, refused);
      for (std::size_t at = begin; at < plans.size(); ++at)
        plans[at].at += type.members[m].second;
    }
    const bool scalar = item.empty();
    for (std::size_t at = first; !scalar && at < plans.size();) {
      refused.push_back({plans[at].name,
                         "the rows are arrays of compound values, but only one "
                         "compound value per row is supported",
                         kOther});
      plans.erase(plans.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return;
  }
  if (type.is == Is::array) {
    std::vector<std::int64_t> all = item;
    all.insert(all.end(), type.dims.begin(), type.dims.end());
    return plan_values(name, type.inner[0], all, plans, refused);
  }
  const bool text = type.is == Is::text || type.is == Is::texts;
  if (text && elements_of(Shape(item)) == 1) plan.item.clear();
  const bool scalar = plan.item.empty();
  plan.declared = type.shown();
  if (scalar && !type.names.empty()) plan.declared += " (an enum)";
  if (!scalar) plan.declared += text_of(Shape(plan.item));
  std::string why;
  if (is_number(type)) {
    const Dtype dtype = dtype_of(type);
    plan.column = !scalar                  ? ColumnType::tensor(dtype)
                  : type.is == Is::boolean ? ColumnType::boolean
                  : is_half(type)          ? ColumnType::number(Dtype::float32)
                                           : ColumnType::number(dtype);
    plan.packed = {.stored = dtype, .dtype = dtype};
  } else if (type.is == Is::other) {
    why = "the data set holds " + type.what + ", which are not supported";
  } else if (!scalar) {
    why = "the rows hold several values of type " + type.shown();
  } else if (type.is == Is::list) {
    plan.column = ColumnType::list;
    if (is_number(type.inner[0]))
      plan.numbers = dtype_of(type.inner[0]);
    else
      why = "the rows hold lists of " + type.inner[0].shown();
  } else {
    plan.column = type.is == Is::bytes ? ColumnType::binary : ColumnType::text;
  }
  if (!why.empty()) return refused.push_back({name, why, kOther});
  plans.push_back(std::move(plan));
}

Column numbers_of(const ValueType& type, RawRows&& raw, std::int64_t count) {
  Column column;
  column.type = ColumnType::number(dtype_of(type));
  column.length = count;
  column.values =
      plain_numbers(type, std::move(raw.bytes), 0, type.bytes, count);
  return column;
}

void unpack_by_attributes(const DataSet& set, const std::string& place,
                          std::vector<ValuePlan>& plans) {
  if (set.type.is == Is::compound) return;
  for (ValuePlan& plan : plans) {
    const Is is = plan.type.is;
    if ((is != Is::integer && is != Is::floating) || !plan.type.names.empty())
      continue;
    plan.packed = files::packed_by(set.attributes, set.singles,
                                   dtype_of(plan.type), place);
    if (is == Is::integer)
      plan.type.is_signed = name_of(plan.packed.stored)[0] == 'i';
    if (!is_half(plan.type) || plan.packed.unpacks)
      plan.column.dtype = plan.packed.dtype;
  }
}

Column numbers_of(const ValuePlan& plan, RawRows&& raw, std::int64_t count) {
  Column column = numbers_of(plan.type, std::move(raw), count);
  if (!plan.packed.unpacks) return column;
  column.type = ColumnType::number(plan.packed.dtype);
  column.values = files::unpacked(plan.packed, column.values);
  return column;
}

Column column_of(const ValuePlan& plan, RawRows&& raw, std::int64_t rows,
                 std::int64_t stride, const IndexedFile& file, GlobalHeap& heap,
                 std::size_t at, std::vector<RowProblem>& problems) {
  Column column;
  column.type = plan.column;
  switch (plan.column.kind) {
    case ColumnKind::boolean:
      booleans(raw.bytes, plan.at, rows, stride, column);
      break;
    case ColumnKind::number:
    case ColumnKind::fixed: {
      column.item = plan.item;
      column.length = rows;
      column.values =
          plain_numbers(plan.type, std::move(raw.bytes), plan.at, stride, rows,
                        elements_of(Shape(plan.item)));
      if (plan.packed.unpacks)
        column.values = files::unpacked(plan.packed, column.values);
      else if (column.type == ColumnType::number(Dtype::float32) &&
               is_half(plan.type))
        column.values = widened(plan.type, column.values);
      break;
    }
    case ColumnKind::binary:
      for (std::int64_t row = 0; row < rows; ++row)
        column.append_text({reinterpret_cast<const char*>(raw.bytes.data()) +
                                row * stride + plan.at,
                            static_cast<std::size_t>(plan.type.bytes)});
      break;
    default:
      if (plan.type.is != Is::text) {
        lists(plan, raw.bytes, rows, stride, file, heap, at, column, problems);
        break;
      }
      for (std::int64_t row = 0; row < rows; ++row)
        append_text(
            column,
            trimmed(raw.bytes.data() + row * stride + plan.at, plan.type), at,
            problems);
  }
  files::mark_bad(raw.bad, at, column, problems);
  return column;
}

}  // namespace penstock::hdf5
