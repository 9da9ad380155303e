#include "penstock/session/safetensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace penstock {
namespace {

constexpr std::string_view kRemarks = "__metadata__";
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as the format says

std::string_view name_in_file(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return "F32";
    case Dtype::float64:
      return "F64";
    case Dtype::int64:
      return "I64";
    case Dtype::boolean:
      return "BOOL";
    case Dtype::uint8:
      return "U8";
    case Dtype::int8:
      return "I8";
    case Dtype::int16:
      return "I16";
    case Dtype::uint16:
      return "U16";
    case Dtype::int32:
      return "I32";
    case Dtype::uint32:
      return "U32";
    case Dtype::uint64:
      return "U64";
    case Dtype::float16:
      return "F16";
    case Dtype::bfloat16:
      return "BF16";
  }
  fail_assertion("dtype", "every dtype has a name in the format", __FILE__,
                 __LINE__);
}

[[noreturn]] void refuse(const std::string& path, std::string why,
                         std::string next =
                             "the file is damaged or was not written by this "
                             "program: use another file") {
  throw Error(ErrorKind::request, {.code = "safetensors.damaged",
                                   .what = "cannot read a safetensors file",
                                   .where = path,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// What torch.save() writes: a zip file, or before torch 1.6 a pickle.
void refuse_pickle(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with("PK\3\4") && !bytes.starts_with("\x80\2")) return;
  refuse(
      path, "the file is a pickle that torch.save() wrote",
      "convert the file once, in Python:\n  import torch, safetensors.torch\n  "
      "state = torch.load(\"" +
          path +
          "\", map_location=\"cpu\", weights_only=True)\n"
          "  safetensors.torch.save_file({name: one.clone() for name, one in "
          "state.items()}, \"weights.safetensors\")");
}

Dtype dtype_in(Spec& spec) {
  std::string name = spec.text("dtype", "");
  std::string all;
  for (std::size_t i = 0; i < kDtypes; ++i) {
    auto dtype = static_cast<Dtype>(i);
    if (name_in_file(dtype) == name) return dtype;
    all += (i == 0 ? "" : ", ") + std::string(name_in_file(dtype));
  }
  spec.refuse("dtype", "found \"" + name + "\", expected one of " + all,
              "use another file");
}

/// Bytes of a tensor of this shape; refuses a product that is no size.
std::uint64_t bytes_of(const Shape& shape, Dtype dtype, std::uint64_t most) {
  std::uint64_t bytes = size_of(dtype);
  for (std::int64_t extent : shape) {
    if (extent == 0) return 0;
    if (bytes > most / static_cast<std::uint64_t>(extent)) return most + 1;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

/// Checks one entry of the header and gives its view into `data`. Products of
/// extents may overflow, so they are compared with the file's size by division;
/// what exceeds it is reported as one byte more than there is.
NamedTensor parse_tensor(const std::string& name, const Json& entry,
                         std::string_view data, const std::string& path) {
  Spec spec(entry, name);
  NamedTensor tensor{.name = name};
  tensor.view.dtype = dtype_in(spec);
  auto numbers = [&](const char* key) {
    const Json* list = spec.raw(key);
    std::vector<std::int64_t> values;
    if (list == nullptr || !list->is_array())
      refuse(path, "tensor '" + name + "' has no list '" + key + "'");
    for (const Json& item : list->array()) {
      auto* number = std::get_if<std::int64_t>(&item.value());
      if (number == nullptr || *number < 0)
        refuse(path, "tensor '" + name + "': '" + key + "' holds " +
                         item.dump() + ", expected a count");
      values.push_back(*number);
    }
    return values;
  };
  tensor.view.shape = numbers("shape");
  std::vector<std::int64_t> range = numbers("data_offsets");
  spec.finish();
  std::uint64_t needed =
      bytes_of(tensor.view.shape, tensor.view.dtype, data.size());
  if (range.size() != 2 || range[1] < range[0] ||
      static_cast<std::uint64_t>(range[1]) > data.size() ||
      static_cast<std::uint64_t>(range[1] - range[0]) != needed)
    refuse(path, "tensor '" + name + "' of shape " +
                     text_of(tensor.view.shape) +
                     " does not lie within the file");
  // A view of what is read has no other type.
  tensor.view.data =
      reinterpret_cast<std::byte*>(const_cast<char*>(data.data() + range[0]));
  return tensor;
}

/// Each byte belongs to one tensor.
void check_apart(const std::vector<NamedTensor>& tensors,
                 const std::string& path) {
  std::vector<const NamedTensor*> in_order;
  for (const NamedTensor& tensor : tensors)
    if (tensor.view.bytes() > 0) in_order.push_back(&tensor);
  std::ranges::sort(in_order, {}, [](auto* of) { return of->view.data; });
  for (std::size_t at = 1; at < in_order.size(); ++at) {
    const NamedTensor &before = *in_order[at - 1], &next = *in_order[at];
    if (before.view.data + before.view.bytes() > next.view.data)
      refuse(path, "tensors '" + before.name + "' and '" + next.name +
                       "' share bytes");
  }
}

}  // namespace

// The header is filled up with blanks to a multiple of 8 bytes, as the
// reference writer does, so that the data begin at such a multiple. Tensors
// follow each other without gaps, in the order of the list.
std::string safetensors_header(const std::vector<NamedTensor>& tensors,
                               const Json& remarks) {
  Json header{Json::Object{}};
  if (!remarks.is_null()) header[kRemarks] = remarks;
  std::size_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    Json& entry = header[tensor.name];
    entry["dtype"] = name_in_file(tensor.view.dtype);
    entry["shape"] = Json::Array{};
    for (std::int64_t extent : tensor.view.shape)
      entry["shape"].push_back(extent);
    entry["data_offsets"].push_back(at);
    at += tensor.view.bytes();
    entry["data_offsets"].push_back(at);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = text.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + text;
}

std::string safetensors(const std::vector<NamedTensor>& tensors,
                        const Json& remarks) {
  std::string file = safetensors_header(tensors, remarks);
  for (const NamedTensor& tensor : tensors)
    file.append(reinterpret_cast<const char*>(tensor.view.data),
                tensor.view.bytes());
  return file;
}

SafetensorsView view_safetensors(std::string_view bytes,
                                 const std::string& path) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) refuse(path, "the file has no header");
  refuse_pickle(bytes, path);
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kLongestHeader || length > bytes.size() - sizeof(length))
    refuse(path, "the file's header of " + std::to_string(length) +
                     " bytes is longer than the file");
  std::string_view text = bytes.substr(sizeof(length), length);
  std::string_view rest = bytes.substr(sizeof(length) + length);
  try {
    Json header = Json::parse(text, path);
    if (!header.is_object())
      refuse(path, "the file's header is not a JSON object");
    SafetensorsView view;
    for (const auto& [name, entry] : header.object()) {
      if (name == kRemarks)
        view.remarks = entry;
      else
        view.tensors.push_back(parse_tensor(name, entry, rest, path));
    }
    check_apart(view.tensors, path);
    return view;
  } catch (const Error& error) {
    if (error.parts().code == "safetensors.damaged") throw;
    refuse(path, error.parts().where + ": " + error.parts().why);
  }
}

ModelState read_safetensors(std::string_view bytes, const std::string& path) {
  SafetensorsView view = view_safetensors(bytes, path);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  ModelState state{.tensors = std::move(view.tensors),
                   .memory = {begin, begin + bytes.size()},
                   .json = std::move(view.remarks)};
  for (NamedTensor& tensor : state.tensors)
    tensor.view.data = state.memory.data() + (tensor.view.data - begin);
  return state;
}

}  // namespace penstock
