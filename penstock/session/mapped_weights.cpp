#include "penstock/session/mapped_weights.h"

#include <filesystem>
#include <set>

#include "penstock/session/safetensors.h"
#include "penstock/session/weights.h"

namespace penstock {
namespace {

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

[[noreturn]] void refuse_mapped(const std::string& path, std::string why) {
  refuse_weights(path, std::move(why),
                 "name the safetensors file of a model, its "
                 "model.safetensors.index.json, or their folder");
}

}  // namespace

MappedWeights::MappedWeights(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path))
    open_folder();
  else if (path.ends_with(".index.json"))
    open_index(path);
  else
    open_file(path);
}

void MappedWeights::open_folder() {
  const std::filesystem::path folder = path_;
  if (std::filesystem::exists(folder / kIndex))
    return open_index((folder / kIndex).string());
  if (std::filesystem::exists(folder / kOneFile))
    return open_file((folder / kOneFile).string());
  refuse_mapped(path_, std::string("the folder holds neither ") + kOneFile +
                           " nor " + kIndex);
}

void MappedWeights::open_index(const std::string& file) {
  std::map<std::string, std::string> parts;  // of each tensor
  std::set<std::string> files;
  try {
    const Json index = Json::parse(real_files().read(file), file);
    const Json* map = index.is_object() ? index.find("weight_map") : nullptr;
    if (map == nullptr || !map->is_object())
      refuse_mapped(file, "the file has no object \"weight_map\"");
    for (const auto& [name, part] : map->object()) {
      if (!part.is_string() || part.string().find('/') != std::string::npos)
        refuse_mapped(file,
                      "tensor '" + name + "' is in " + part.dump() +
                          ", expected the name of a file in the same folder");
      parts[name] = part.string();
      files.insert(part.string());
    }
  } catch (const Error& error) {
    if (error.parts().code == "model.weights") throw;
    refuse_mapped(file, error.parts().why);
  }
  const auto folder = std::filesystem::path(file).parent_path();
  for (const std::string& part : files) open_file((folder / part).string());
  for (const auto& [name, part] : parts)
    if (!has(name))
      refuse_mapped(file, "tensor '" + name + "' is not in " + part);
}

void MappedWeights::open_file(const std::string& file) {
  SafetensorsView view;
  try {
    files_.push_back(real_files().map(file));
    const std::span<const std::byte> bytes = files_.back()->bytes();
    view = view_safetensors(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::request) throw;
    refuse_mapped(file, error.parts().why);
  }
  names_.push_back(file);
  for (auto& [name, tensor] : weights_in(view)) tensors_[name] = {file, tensor};
}

const MappedWeights::Tensor& MappedWeights::at(const std::string& name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end())
    refuse_mapped(path_, "the file has no tensor '" + name + "'");
  return found->second;
}

}  // namespace penstock
