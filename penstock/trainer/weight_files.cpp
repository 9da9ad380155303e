#include "penstock/trainer/weight_files.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "penstock/session/session.h"
#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

[[noreturn]] void refuse_file(const std::string& path, std::string why) {
  refuse_weights(path, std::move(why),
                 "name the safetensors file of such a model, its "
                 "model.safetensors.index.json, or their folder");
}

bool fits(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 ||
         dtype == Dtype::float16 || dtype == Dtype::bfloat16 ||
         dtype == Dtype::int64 || dtype == Dtype::boolean;
}

}  // namespace

WeightFiles::WeightFiles(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path))
    open_folder();
  else if (path.ends_with(".index.json"))
    open_index(path);
  else
    open_file(path);
}
WeightFiles::~WeightFiles() = default;

void WeightFiles::open_folder() {
  const std::filesystem::path folder = path_;
  if (std::filesystem::exists(folder / kIndex))
    return open_index((folder / kIndex).string());
  if (std::filesystem::exists(folder / kOneFile))
    return open_file((folder / kOneFile).string());
  refuse_file(path_, std::string("the folder holds neither ") + kOneFile +
                         " nor " + kIndex);
}

void WeightFiles::open_index(const std::string& file) {
  std::map<std::string, std::string> parts;  // of each tensor
  std::set<std::string> files;
  try {
    const Json index = Json::parse(real_files().read(file), file);
    const Json* map = index.is_object() ? index.find("weight_map") : nullptr;
    if (map == nullptr || !map->is_object())
      refuse_file(file, "the file has no object \"weight_map\"");
    for (const auto& [name, part] : map->object()) {
      if (!part.is_string() || part.string().find('/') != std::string::npos)
        refuse_file(file,
                    "tensor '" + name + "' is in " + part.dump() +
                        ", expected the name of a file in the same folder");
      parts[name] = part.string();
      files.insert(part.string());
    }
  } catch (const Error& error) {
    if (error.parts().code == "model.weights") throw;
    refuse_file(file, error.parts().why);
  }
  const auto folder = std::filesystem::path(file).parent_path();
  for (const std::string& part : files) open_file((folder / part).string());
  for (const auto& [name, part] : parts)
    if (!has(name))
      refuse_file(file, "tensor '" + name + "' is not in " + part);
}

void WeightFiles::open_file(const std::string& file) {
  SafetensorsView view;
  try {
    files_.push_back(real_files().map(file));
    const std::span<const std::byte> bytes = files_.back()->bytes();
    view = view_safetensors(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::request) throw;
    refuse_file(file, error.parts().why);
  }
  for (auto& [name, tensor] : weights_in(view)) tensors_[name] = {file, tensor};
}

std::vector<std::int64_t> WeightFiles::shape_of(const std::string& name) const {
  return tensors_.at(name).view.shape;
}

at::Tensor WeightFiles::take(const std::string& name,
                             at::IntArrayRef shape) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end())
    refuse_file(path_, "the file has no tensor '" + name + "'");
  const auto& [file, view] = found->second;
  if (view.shape != shape.vec() || !fits(view.dtype))
    refuse_file(file, "tensor '" + name + "' is " +
                          std::string(name_of(view.dtype)) + " " +
                          text_of(view.shape) + ", expected numbers of shape " +
                          text_of(shape.vec()));
  taken_.insert(name);
  // The header of a safetensors file has any length unless its writer pads it,
  // so a tensor may begin anywhere. An aligned one is used where it is mapped,
  // without a copy.
  if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) == 0)
    return borrowed(view);
  at::Tensor copy = at::empty(shape, borrowed(view).options());
  std::memcpy(copy.mutable_data_ptr(), view.data, view.bytes());
  return copy;
}

void WeightFiles::check_all_taken(const std::vector<std::string>& known) const {
  for (const auto& [name, place] : tensors_) {
    if (taken_.contains(name)) continue;
    if (std::ranges::none_of(known, [&, &name = name](const std::string& end) {
          return name.ends_with(end);
        }))
      refuse_file(place.file, "the model has no tensor '" + name + "'");
  }
}

}  // namespace penstock
