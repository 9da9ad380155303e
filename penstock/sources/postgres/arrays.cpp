#include "penstock/sources/postgres/arrays.h"

#include <cstring>

#include "penstock/sources/postgres/big_endian.h"

// An array in binary (array_send in PostgreSQL): dimensions, a flag for NULLs
// and the oid of its elements, each of 4 bytes; of each dimension its size and
// its first index; then the elements, the last dimension's side by side, each
// after its length, -1 for NULL.
//
// A vector (vector_send in pgvector): its dimensions and an unused number, each
// of 2 bytes, then float4s.
namespace penstock::postgres {
namespace {

constexpr std::size_t kArrayHead = 12, kDimension = 8, kLength = 4,
                      kVectorHead = 4;
constexpr std::int32_t kMostDimensions = 6;

std::int32_t dimensions_of(const Field& array) {
  return load_big<std::int32_t>(array.data);
}

std::size_t head_of(const Field& array) {
  return kArrayHead +
         kDimension * static_cast<std::size_t>(dimensions_of(array));
}

/// Calls `take(element)` for each, a null Field for NULL, until it returns
/// false. False too where the bytes are no elements to their end.
template <class Take>
bool each_element(const Field& array, Take take) {
  std::size_t at = head_of(array);
  while (at < array.size) {
    if (array.size - at < 4) return false;
    const auto size = load_big<std::int32_t>(array.data + at);
    at += 4;
    if (size < kNullLength) return false;
    const std::size_t bytes =
        size == kNullLength ? 0 : static_cast<std::size_t>(size);
    if (array.size - at < bytes) return false;
    if (!take(size == kNullLength ? Field{} : Field{array.data + at, bytes}))
      return false;
    at += bytes;
  }
  return true;
}

/// How many elements the dimensions announce; nullopt where they cannot be. The
/// product is compared with the number of bytes at each step, which also keeps
/// it from overflowing; the number of elements that are there is counted apart.
std::optional<std::size_t> announced(const Field& array) {
  std::size_t all = dimensions_of(array) == 0 ? 0 : 1;
  for (std::size_t at = kArrayHead; at < head_of(array); at += kDimension) {
    const auto size = load_big<std::int32_t>(array.data + at);
    // Each element takes 4 bytes at least.
    if (size < 0 || (all *= static_cast<std::size_t>(size)) > array.size)
      return std::nullopt;
  }
  return all;
}

/// Of the first NULL in an array, from 1.
std::optional<std::int64_t> place_of_null(const Field& array) {
  std::int64_t place = 0;
  const bool none = each_element(array, [&](const Field& one) {
    ++place;
    return !one.null();
  });
  return none ? std::nullopt : std::optional(place);
}

/// Numbers that lie `stride` bytes apart. None is null, so the column, which
/// has none either, keeps no bits for them.
template <class Number>
void append_numbers(const char* from, std::size_t stride, std::size_t count,
                    Column& to) {
  const std::size_t at = to.values.size();
  to.values.resize(at + count * sizeof(Number));
  std::byte* out = to.values.mutable_data<std::byte>() + at;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = load_big<Number>(from + i * stride);
    std::memcpy(out + i * sizeof(Number), &number, sizeof(Number));
  }
  to.length += static_cast<std::int64_t>(count);
}

/// All that lie from `begin` on, each after `before` bytes.
template <class Number>
void append_rest(const Field& field, std::size_t begin, std::size_t before,
                 Column& to) {
  const std::size_t stride = before + sizeof(Number);
  append_numbers<Number>(field.data + begin + before, stride,
                         (field.size - begin) / stride, to);
}

}  // namespace

std::optional<Kind> element_of(Kind kind) {
  switch (kind) {
    case Kind::int2_array:
      return Kind::int2;
    case Kind::int4_array:
      return Kind::int4;
    case Kind::int8_array:
      return Kind::int8;
    case Kind::float4_array:
    case Kind::vector:
      return Kind::float4;
    case Kind::float8_array:
      return Kind::float8;
    default:
      return std::nullopt;
  }
}

bool well_formed_list(Kind kind, const Field& field) {
  if (kind == Kind::vector) {
    if (field.size < kVectorHead) return false;
    const auto size = load_big<std::int16_t>(field.data);
    return size >= 0 &&
           field.size ==
               kVectorHead + sizeof(float) * static_cast<std::size_t>(size);
  }
  if (field.size < kArrayHead) return false;
  const std::int32_t dimensions = dimensions_of(field);
  if (dimensions < 0 || dimensions > kMostDimensions ||
      field.size < head_of(field))
    return false;
  std::size_t elements = 0;
  const bool whole = each_element(field, [&](const Field& element) {
    ++elements;
    return element.null() || element.size == width_of(*element_of(kind));
  });
  return whole && announced(field) == elements;
}

bool append_list(Kind kind, const Field& field, Column& to) {
  Column& numbers = to.children[0];
  if (kind == Kind::vector) {
    append_rest<float>(field, kVectorHead, 0, numbers);
    to.append_list();
    return true;
  }
  if (place_of_null(field)) return false;
  const std::size_t begin = head_of(field);
  switch (*element_of(kind)) {
    case Kind::int2:
      append_rest<std::int16_t>(field, begin, kLength, numbers);
      break;
    case Kind::int4:
      append_rest<std::int32_t>(field, begin, kLength, numbers);
      break;
    case Kind::int8:
      append_rest<std::int64_t>(field, begin, kLength, numbers);
      break;
    case Kind::float4:
      append_rest<float>(field, begin, kLength, numbers);
      break;
    default:
      append_rest<double>(field, begin, kLength, numbers);
  }
  to.append_list();
  return true;
}

std::string shown_list(Kind kind, const Field& field) {
  if (kind == Kind::vector) return "a vector";
  if (const std::optional<std::int64_t> place = place_of_null(field))
    return "an array whose element " + std::to_string(*place) + " is NULL";
  return "an array";
}

}  // namespace penstock::postgres
