#include "penstock/base/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "penstock/base/error.h"

// The format (github.com/huggingface/safetensors, README, "Format"): a uint64,
// little-endian, is the length of the header. The header is JSON, {"name":
// {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
// "__metadata__": {...}}. The tensors' bytes follow, little-endian and in C
// order; offsets count from the end of the header.

namespace penstock {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's limit

constexpr std::array<std::pair<Dtype, std::string_view>, kDtypes> kTensorTypes =
    {{
        {Dtype::float32, "F32"},
        {Dtype::float64, "F64"},
        {Dtype::int64, "I64"},
        {Dtype::boolean, "BOOL"},
        {Dtype::uint8, "U8"},
        {Dtype::int8, "I8"},
        {Dtype::int16, "I16"},
        {Dtype::uint16, "U16"},
        {Dtype::int32, "I32"},
        {Dtype::uint32, "U32"},
        {Dtype::uint64, "U64"},
        {Dtype::float16, "F16"},
        {Dtype::bfloat16, "BF16"},
    }};

[[noreturn]] void refuse(const std::string& path, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "safetensors.damaged",
               .what = "cannot read a safetensors file",
               .where = path,
               .why = std::move(why),
               .next = "download or export the file again: this file is "
                       "damaged or is not a safetensors file"});
}

/// The header of one tensor, where it is read from the file at `path`.
class Entry {
 public:
  Entry(const std::string& name, const Json& json, const std::string& path)
      : name_(name), json_(json), path_(path) {}

  [[noreturn]] void refuse(const std::string& why) const {
    penstock::refuse(path_, "tensor '" + name_ + "'" + why);
  }
  const std::string& text(const char* key) const {
    const Json* found = member(key);
    if (found == nullptr || !found->is_string())
      refuse(std::string(": the header has no string \"") + key + "\"");
    return found->string();
  }
  std::vector<std::int64_t> counts(const char* key) const {
    const Json* list = member(key);
    if (list == nullptr || !list->is_array())
      refuse(std::string(": the header has no list \"") + key + "\"");
    std::vector<std::int64_t> values;
    for (const Json& item : list->array()) {
      const auto* number = std::get_if<std::int64_t>(&item.value());
      if (number == nullptr || *number < 0)
        refuse(std::string(": '") + key + "' holds " + item.dump() +
               ", expected a count");
      values.push_back(*number);
    }
    return values;
  }

 private:
  const Json* member(const char* key) const {
    return json_.is_object() ? json_.find(key) : nullptr;
  }

  const std::string& name_;
  const Json& json_;
  const std::string& path_;
};

/// Whether a tensor of this shape has exactly so many bytes. A product of
/// extents may overflow, so it is compared by division.
bool has_bytes(const Shape& shape, Dtype dtype, std::size_t bytes) {
  if (std::ranges::find(shape, 0) != shape.end()) return bytes == 0;
  std::size_t needed = size_of(dtype);
  for (std::int64_t extent : shape) {
    if (needed > bytes / static_cast<std::size_t>(extent)) return false;
    needed *= static_cast<std::size_t>(extent);
  }
  return needed == bytes;
}

SafetensorsEntry read_entry(const std::string& name, const Json& json,
                            std::size_t data, std::size_t size,
                            const std::string& path) {
  const Entry entry(name, json, path);
  SafetensorsEntry tensor{.name = name, .declared = entry.text("dtype")};
  const auto known = std::ranges::find(
      kTensorTypes, tensor.declared, [](const auto& of) { return of.second; });
  if (known != kTensorTypes.end()) tensor.dtype = known->first;
  tensor.shape = entry.counts("shape");
  const std::vector<std::int64_t> offsets = entry.counts("data_offsets");
  if (offsets.size() != 2) entry.refuse(" does not have two offsets");
  const auto begin = static_cast<std::size_t>(offsets[0]);
  const auto end = static_cast<std::size_t>(offsets[1]);
  if (begin > end || end > size - data)
    entry.refuse(" is at bytes " + std::to_string(begin) + " to " +
                 std::to_string(end) + " of " + std::to_string(size - data));
  if (tensor.dtype && !has_bytes(tensor.shape, *tensor.dtype, end - begin))
    entry.refuse(" (" + tensor.declared + " " + text_of(tensor.shape) +
                 ") does not have " + std::to_string(end - begin) + " bytes");
  tensor.begin = data + begin;
  tensor.end = data + end;
  return tensor;
}

void check_apart(const std::vector<SafetensorsEntry>& tensors,
                 const std::string& path) {
  std::vector<const SafetensorsEntry*> in_order;
  for (const SafetensorsEntry& tensor : tensors)
    if (tensor.end > tensor.begin) in_order.push_back(&tensor);
  std::ranges::sort(in_order, {}, &SafetensorsEntry::begin);
  for (std::size_t at = 1; at < in_order.size(); ++at) {
    const SafetensorsEntry &before = *in_order[at - 1], &next = *in_order[at];
    if (before.end > next.begin)
      refuse(path, "tensors '" + before.name + "' and '" + next.name +
                       "' share bytes");
  }
}

Json parsed(std::string_view text, const std::string& path) try {
  return Json::parse(text, path);
} catch (const Error& error) {
  refuse(path, "the header cannot be read: " + error.parts().why);
}

}  // namespace

std::string_view name_in_safetensors(Dtype dtype) {
  return std::ranges::find(kTensorTypes, dtype,
                           [](const auto& of) { return of.first; })
      ->second;
}

SafetensorsHeader read_safetensors_header(std::span<const std::byte> bytes,
                                          const std::string& path) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) refuse(path, "the file has no header");
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kLongestHeader || length > bytes.size() - sizeof(length))
    refuse(path, "the file's header of " + std::to_string(length) +
                     " bytes is longer than the file or 100,000,000 bytes");
  const std::size_t data = sizeof(length) + static_cast<std::size_t>(length);
  const Json json =
      parsed({reinterpret_cast<const char*>(bytes.data()) + sizeof(length),
              static_cast<std::size_t>(length)},
             path);
  if (!json.is_object()) refuse(path, "the header is not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.object())
    if (name == kSafetensorsRemarks)
      header.remarks = entry;
    else
      header.tensors.push_back(
          read_entry(name, entry, data, bytes.size(), path));
  check_apart(header.tensors, path);
  return header;
}

}  // namespace penstock
