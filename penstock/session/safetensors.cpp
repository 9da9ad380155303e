#include "penstock/session/safetensors.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "penstock/base/safetensors_header.h"
#include "penstock/base/shown.h"

namespace penstock {
namespace {

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

/// Where a tensor of the file lies in `bytes`.
NamedTensor view_of(const SafetensorsEntry& entry, std::string_view bytes,
                    const std::string& path) {
  if (!entry.dtype) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < kDtypes; ++i)
      all.emplace_back(name_in_safetensors(static_cast<Dtype>(i)));
    refuse(path, "tensor '" + entry.name + "' has the type \"" +
                     entry.declared + "\", expected one of " + listed(all));
  }
  // A view of what is read has no other type.
  auto* data = reinterpret_cast<std::byte*>(const_cast<char*>(bytes.data())) +
               entry.begin;
  return {entry.name,
          {.data = data, .dtype = *entry.dtype, .shape = entry.shape}};
}

}  // namespace

// The header is filled up with blanks to a multiple of 8 bytes, as the
// reference writer does, so that the data begin at such a multiple. Tensors
// follow each other without gaps, in the order of the list.
std::string safetensors_header(const std::vector<NamedTensor>& tensors,
                               const Json& remarks) {
  Json header{Json::Object{}};
  if (!remarks.is_null()) header[kSafetensorsRemarks] = remarks;
  std::size_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    Json& entry = header[tensor.name];
    entry["dtype"] = name_in_safetensors(tensor.view.dtype);
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
  refuse_pickle(bytes, path);
  SafetensorsHeader header =
      read_safetensors_header(std::as_bytes(std::span(bytes)), path);
  SafetensorsView view{.remarks = std::move(header.remarks)};
  for (const SafetensorsEntry& entry : header.tensors)
    view.tensors.push_back(view_of(entry, bytes, path));
  return view;
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
