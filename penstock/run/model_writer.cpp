#include "penstock/run/model_writer.h"

#include <algorithm>

#include "penstock/base/folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexFile = "model.safetensors.index.json";

fs::path folder_of_weights(const std::string& path) {
  return fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
}

/// Refuses a folder in which something would be replaced.
fs::path checked_out(const std::string& out, const fs::path& model) {
  std::error_code none;
  if (!fs::exists(out, none) ||
      (fs::is_directory(out, none) && fs::is_empty(out, none)))
    return out;
  throw Error(ErrorKind::request,
              {.code = "model.out_exists",
               .what = "cannot write a model",
               .where = out,
               .why = fs::equivalent(out, model, none)
                          ? "it is the folder of the model that is read"
                          : "it exists and is not an empty folder",
               .next = "name a new folder with --out"});
}

/// Weights in other formats would contradict those that are written.
bool is_weights(const fs::path& file) {
  static const std::vector<std::string> kinds = {
      ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack"};
  return std::ranges::find(kinds, file.extension().string()) != kinds.end() ||
         file.filename().string().ends_with(".index.json");
}

}  // namespace

ModelWriter::ModelWriter(const MappedWeights& from, const std::string& out)
    : from_(from),
      model_(folder_of_weights(from.path())),
      out_(real_files(), checked_out(out, model_), "--out") {}

void ModelWriter::write_weights(const Replace& replace,
                                const std::function<void()>& shard_written) {
  Json places{Json::Object{}};
  std::int64_t total = 0;
  for (const std::string& file : from_.files()) {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, tensor] : from_.all())
      if (tensor.file == file)
        for (NamedTensor& one : replace(name, tensor.view))
          tensors.push_back(std::move(one));
    const std::string shard = fs::path(file).filename().string();
    const std::string header = safetensors_header(tensors, weights_remarks());
    std::vector<std::span<const std::byte>> pieces = {
        std::as_bytes(std::span(header))};
    for (const NamedTensor& tensor : tensors) {
      pieces.emplace_back(tensor.view.data, tensor.view.bytes());
      places[tensor.name] = shard;
      total += static_cast<std::int64_t>(tensor.view.bytes());
    }
    out_.write(shard, pieces, Lasting::with_next);
    shard_written();
  }
  if (from_.files().size() == 1) return;
  Json index;
  index["metadata"]["total_size"] = total;
  index["weight_map"] = std::move(places);
  out_.write(kIndexFile, index.dump(2) + "\n");
}

void ModelWriter::write_rest(const Json& config) {
  std::error_code unreadable;
  for (const FolderEntry& entry : entries_of(model_, unreadable)) {
    const std::string name = entry.path.filename().string();
    if (fs::is_regular_file(entry.path, unreadable) && name != "config.json" &&
        !is_weights(entry.path))
      out_.write(name, real_files().read(entry.path), Lasting::with_next);
  }
  out_.write("config.json", config.dump(2) + "\n");
}

Json without(const Json& object, const std::vector<std::string>& keys) {
  Json left{Json::Object{}};
  for (const auto& [key, value] : object.object())
    if (std::ranges::find(keys, key) == keys.end()) left[key] = value;
  return left;
}

}  // namespace penstock
