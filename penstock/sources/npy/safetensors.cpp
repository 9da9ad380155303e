#include "penstock/sources/npy/safetensors.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/json.h"

namespace penstock::npy {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit

void set_tensor_type(const std::string& name, ArrayLayout& layout) {
  static const std::map<std::string, Dtype> kTypes = {
      {"F16", Dtype::float16}, {"BF16", Dtype::bfloat16},
      {"F32", Dtype::float32}, {"F64", Dtype::float64},
      {"I8", Dtype::int8},     {"I16", Dtype::int16},
      {"I32", Dtype::int32},   {"I64", Dtype::int64},
      {"U8", Dtype::uint8},    {"U16", Dtype::uint16},
      {"U32", Dtype::uint32},  {"U64", Dtype::uint64}};
  files::ArrayInfo& info = layout.info;
  info.declared = name;
  info.dtype = Dtype::uint8;
  if (auto found = kTypes.find(name); found != kTypes.end()) {
    info.dtype = found->second;
  } else if (name == "BOOL") {
    info.items = files::ArrayItems::booleans;
  } else {
    info.items = files::ArrayItems::unread;
    info.why = "it holds values of the type '" + name + "'";
  }
}

std::int64_t whole(const Json& json, const std::string& path) {
  const auto* number = std::get_if<std::int64_t>(&json.value());
  if (number == nullptr || *number < 0)
    damaged(path,
            "the header has " + json.dump() + " where a size is expected");
  return *number;
}

const Json& member(const Json& entry, const char* key, bool list,
                   const std::string& path) {
  const Json* found = entry.is_object() ? entry.find(key) : nullptr;
  if (found == nullptr || (list ? !found->is_array() : !found->is_string()))
    damaged(path, std::string("a tensor of its header has no '") + key + "'");
  return *found;
}

ArrayLayout read_tensor(const std::string& name, const Json& entry,
                        std::size_t data, std::size_t size,
                        const std::string& path) {
  ArrayLayout layout;
  layout.info.name = name;
  set_tensor_type(member(entry, "dtype", false, path).string(), layout);
  for (const Json& extent : member(entry, "shape", true, path).array())
    layout.info.shape.push_back(whole(extent, path));
  const auto& offsets = member(entry, "data_offsets", true, path).array();
  if (offsets.size() != 2) damaged(path, "'" + name + "' has no two offsets");
  const auto begin = static_cast<std::size_t>(whole(offsets[0], path));
  const auto end = static_cast<std::size_t>(whole(offsets[1], path));
  if (begin > end || end > size)
    damaged(path, "'" + name + "' lies from byte " + std::to_string(begin) +
                      " to " + std::to_string(end) + " of " +
                      std::to_string(size));
  layout.info.declared += " " + text_of(layout.info.shape);
  layout.begin = data + begin;
  if (layout.info.items != files::ArrayItems::unread &&
      bytes_of(layout.info) != end - begin)
    damaged(path, "'" + name + "' (" + layout.info.declared + ") has " +
                      std::to_string(end - begin) + " bytes");
  return layout;
}

}  // namespace

// The format (github.com/huggingface/safetensors, README): a uint64, little-
// endian, is the length of the header; the header is JSON, {"name": {"dtype":
// "F32", "shape": [2, 3], "data_offsets": [begin, end]}, "__metadata__":
// {...}}; the data follow. Offsets count from the end of the header, and values
// are little-endian, in C order.
std::vector<ArrayLayout> read_safetensors(std::span<const std::byte> bytes,
                                          const std::string& path) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) damaged(path, "the file has no header");
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMostHeader || length > bytes.size() - sizeof(length))
    damaged(path, "the header has " + std::to_string(length) +
                      " bytes, more than the file or 100,000,000");
  const std::size_t data = sizeof(length) + static_cast<std::size_t>(length);
  const std::string text(
      reinterpret_cast<const char*>(bytes.data()) + sizeof(length),
      static_cast<std::size_t>(length));
  Json header;
  try {
    header = Json::parse(text, path);
  } catch (const Error& error) {
    damaged(path, "the header cannot be read: " + error.parts().why);
  }
  if (!header.is_object()) damaged(path, "the header is not a JSON object");
  std::vector<ArrayLayout> tensors;
  for (const auto& [name, entry] : header.object())
    if (name != "__metadata__")
      tensors.push_back(
          read_tensor(name, entry, data, bytes.size() - data, path));
  std::ranges::sort(tensors, {},
                    [](const ArrayLayout& one) { return one.info.name; });
  return tensors;
}

}  // namespace penstock::npy
