#include "penstock/sources/hdf5/index_program/described_type.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/sources/hdf5/index_program/handle.h"

namespace penstock::hdf5 {
namespace {

constexpr int kDeepest = 16;
constexpr const char* kTooDeep = "types nested more than 16 levels deep";
constexpr int kMostNames = 65536;  // of an enum
/// Of a value of variable length, in the file: a length, an address of 64 bits
/// and a number there.
constexpr std::size_t kReference = 16;

Json of(const char* what, std::size_t bytes) {
  Json type(Json::Object{});
  type["is"] = what;
  type["bytes"] = bytes;
  return type;
}

Json other(std::size_t bytes, const std::string& what) {
  Json type = of("other", bytes);
  type["what"] = what;
  return type;
}

/// All bits of the bytes count, from the first one on.
bool is_plain(hid_t type, std::size_t bytes) {
  return H5Tget_precision(type) == 8 * bytes && H5Tget_offset(type) == 0;
}

std::string bits(std::size_t bytes) { return std::to_string(8 * bytes); }

Json integer(hid_t type, std::size_t bytes) {
  if (!is_plain(type, bytes) ||
      (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
    return other(bytes, "integers of " +
                            std::to_string(H5Tget_precision(type)) +
                            " bits in " + bits(bytes));
  Json described = of("integer", bytes);
  described["signed"] =
      H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  described["big"] = bytes > 1 && H5Tget_order(type) == H5T_ORDER_BE;
  return described;
}

Json floating(hid_t type, std::size_t bytes) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0,
              mantissa_bits = 0;
  H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa,
                &mantissa_bits);
  const bool brain = bytes == 2 && exponent_bits == 8;
  const std::size_t ieee = bytes == 2   ? 5
                           : bytes == 4 ? 8
                           : bytes == 8 ? 11
                                        : 0;
  const H5T_order_t order = H5Tget_order(type);
  if (!is_plain(type, bytes) || ieee == 0 ||
      (exponent_bits != ieee && !brain) || order == H5T_ORDER_VAX ||
      mantissa != 0 || mantissa_bits != exponent || sign != 8 * bytes - 1)
    return other(
        bytes, "floats of " + bits(bytes) +
                   " bits, which are not IEEE 754 floats of 16, 32 or 64 bits");
  Json described = of("float", bytes);
  described["big"] = order == H5T_ORDER_BE;
  described["brain"] = brain;
  return described;
}

Json fixed_text(hid_t type, std::size_t bytes) {
  Json described = of("text", bytes);
  described["blanks"] = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  return described;
}

bool is_boolean(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  std::array<bool, 2> found{};
  for (unsigned at = 0; at < 2; ++at) {
    signed char value = 0;
    H5Tget_member_value(type, at, &value);
    char* name = H5Tget_member_name(type, at);
    if (name == nullptr) return false;
    if (std::strcmp(name, "FALSE") == 0 && value == 0) found[0] = true;
    if (std::strcmp(name, "TRUE") == 0 && value == 1) found[1] = true;
    H5free_memory(name);
  }
  return found[0] && found[1];
}

/// The names of 0, 1, 2 and so on, where an enum has these values and no
/// others; empty: it has others.
std::vector<std::string> names_of(hid_t type) {
  const int count = H5Tget_nmembers(type);
  if (count < 1 || count > kMostNames) return {};
  if (H5Tget_size(type) > sizeof(std::int64_t)) return {};
  std::vector<std::string> names(static_cast<std::size_t>(count));
  Handle base(H5Tget_super(type));
  for (int at = 0; at < count; ++at) {
    std::int64_t value = -1;
    if (H5Tget_member_value(type, static_cast<unsigned>(at), &value) < 0 ||
        H5Tconvert(base, H5T_NATIVE_INT64, 1, &value, nullptr, H5P_DEFAULT) < 0)
      return {};
    char* name = H5Tget_member_name(type, static_cast<unsigned>(at));
    if (name == nullptr) return {};
    if (value >= 0 && value < count)
      names[static_cast<std::size_t>(value)] = name;
    H5free_memory(name);
  }
  const bool all = std::ranges::none_of(
      names, [](const std::string& name) { return name.empty(); });
  return all ? names : std::vector<std::string>();
}

Json enumeration(hid_t type, int depth) {
  Json described = described_type(Handle(H5Tget_super(type)), depth + 1);
  const std::vector<std::string> names = names_of(type);
  if (described.find("is")->string() == "integer")
    for (const std::string& name : names) described["names"].push_back(name);
  return described;
}

std::size_t size_of(const Json& described) {
  return static_cast<std::size_t>(described.find("bytes")->integer());
}

/// The size of such a type in the file is unknown, and so are the places of
/// what lies behind it.
bool is_too_deep(const Json& described) {
  const Json* what = described.find("what");
  return what != nullptr && *what == Json(kTooDeep);
}

// H5Dget_type gives sizes and offsets in memory, where a value of variable
// length is a pointer; in the file it is a length, an address and a number.
// libhdf5 moves the members behind such a value, in the order of their offsets,
// by the difference. Here they are moved back.

Json compound(hid_t type, std::size_t bytes, int depth) {
  const int count = H5Tget_nmembers(type);
  std::vector<std::pair<std::size_t, unsigned>> by_offset;
  for (unsigned at = 0; at < static_cast<unsigned>(std::max(count, 0)); ++at)
    by_offset.emplace_back(H5Tget_member_offset(type, at), at);
  std::ranges::sort(by_offset);
  Json::Array members(by_offset.size());
  std::size_t moved = 0;  // modulo 2^64: a string is larger in the file
  for (const auto& [offset, at] : by_offset) {
    char* name = H5Tget_member_name(type, at);
    Handle member(H5Tget_member_type(type, at));
    Json one(Json::Object{});
    one["name"] = std::string(name == nullptr ? "" : name);
    one["at"] = offset + moved;
    one["type"] = described_type(member, depth + 1);
    H5free_memory(name);
    if (is_too_deep(*one.find("type"))) return other(bytes, kTooDeep);
    moved += size_of(*one.find("type")) - H5Tget_size(member);
    members[at] = std::move(one);
  }
  Json described = of("compound", bytes + moved);
  described["members"] = std::move(members);
  return described;
}

Json array(hid_t type, std::size_t bytes, int depth) {
  const int rank = H5Tget_array_ndims(type);
  if (rank < 1 || rank > H5S_MAX_RANK) return other(bytes, "arrays");
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  H5Tget_array_dims2(type, dims.data());
  Handle element(H5Tget_super(type));
  const std::size_t in_memory = H5Tget_size(element);
  Json inner = described_type(element, depth + 1);
  if (in_memory == 0 || is_too_deep(inner)) return other(bytes, kTooDeep);
  Json described = of("array", bytes / in_memory * size_of(inner));
  for (hsize_t size : dims) described["dims"].push_back(std::size_t{size});
  described["of"] = std::move(inner);
  return described;
}

Json reference(hid_t type, std::size_t bytes) {
  return other(bytes, H5Tequal(type, H5T_STD_REF_OBJ) > 0
                          ? "references to objects"
                          : "references to regions");
}

}  // namespace

Json described_type(hid_t type, int depth) {
  const std::size_t bytes = H5Tget_size(type);
  if (depth > kDeepest || bytes == 0) return other(bytes, kTooDeep);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_BITFIELD:
      return integer(type, bytes);
    case H5T_FLOAT:
      return floating(type, bytes);
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0 ? of("texts", kReference)
                                          : fixed_text(type, bytes);
    case H5T_ENUM:
      if (is_boolean(type)) return of("boolean", bytes);
      return enumeration(type, depth);
    case H5T_OPAQUE:
      return of("bytes", bytes);
    case H5T_COMPOUND:
      return compound(type, bytes, depth);
    case H5T_ARRAY:
      return array(type, bytes, depth);
    case H5T_REFERENCE:
      return reference(type, bytes);
    case H5T_VLEN: {
      Json described = of("list", kReference);
      described["of"] = described_type(Handle(H5Tget_super(type)), depth + 1);
      return described;
    }
    default:
      return other(bytes, "an unsupported type");
  }
}

}  // namespace penstock::hdf5
