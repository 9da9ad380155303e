#include "penstock/run/carried_files.h"

#include <string>
#include <utility>

#include "penstock/base/sha256_of.h"
#include "penstock/session/session.h"

// A run's folder is complete: what its job names by a path, and what its rows
// and model cannot be made without, is copied into it. run.json lists the
// copies: where the path stands in the job, the copy, and its SHA-256.

namespace penstock {
namespace {

class Carrier {
 public:
  explicit Carrier(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// A file that the job names at `setting`. `suffix` stands behind the path
  /// there, as in "net.py:Net".
  void add(Json::Array setting, const std::filesystem::path& from,
           const std::string& suffix = "") {
    const std::string name = copy(from, std::to_string(list_.size()));
    Json entry;
    entry["setting"] = Json(std::move(setting));
    entry["file"] = name;
    entry["sha256"] = hash_;
    if (!suffix.empty()) entry["suffix"] = suffix;
    list_.push_back(std::move(entry));
  }
  /// A file that is read because it lies beside the one before.
  void add_beside(const std::filesystem::path& from) {
    std::error_code none;
    if (std::filesystem::is_regular_file(from, none))
      copy(from, std::to_string(list_.size() - 1));
  }
  Json list() && { return Json(std::move(list_)); }

 private:
  std::string copy(const std::filesystem::path& from,
                   const std::string& number) {
    const std::string bytes = real_files().read(from);
    hash_ = sha256_of(bytes);
    const std::filesystem::path to = std::filesystem::path("files") / number;
    OutputFolder(real_files(), folder_ / to, "output.dir")
        .write(from.filename().string(), bytes);
    return (to / from.filename()).string();
  }
  const std::filesystem::path folder_;
  Json::Array list_;
  std::string hash_;
};

std::string text_at(const Json& section, const char* key) {
  const Json* found = section.is_object() ? section.find(key) : nullptr;
  return found != nullptr && found->is_string() ? found->string() : "";
}

void carry_tokenizer(const std::string& field, const Json& tokens,
                     Carrier& carrier) {
  const std::filesystem::path file = text_at(tokens, "tokenizer");
  if (!file.empty()) {
    carrier.add({"fields", field, "tokens", "tokenizer"}, file);
    for (const char* beside : {"tokenizer_config.json", "chat_template.jinja"})
      carrier.add_beside(file.parent_path() / beside);
  }
  if (const std::string chat = text_at(tokens, "chat_template"); !chat.empty())
    carrier.add({"fields", field, "tokens", "chat_template"}, chat);
}

/// Where "config" names a folder, or "path" stands for it.
std::filesystem::path config_in(const std::string& named) {
  std::filesystem::path path = named;
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) path /= "config.json";
  return std::filesystem::is_regular_file(path, none) ? path
                                                      : std::filesystem::path();
}

void carry_model(const Json& model, Carrier& carrier) {
  const std::string kind = text_at(model, "kind");
  if (kind == "own") {
    const std::string named = text_at(model, "class");
    const std::size_t colon = named.rfind(':');
    if (colon == named.npos) return;  // it was given in Python
    std::error_code none;
    const std::filesystem::path file = named.substr(0, colon);
    if (std::filesystem::is_regular_file(file, none))
      carrier.add({"model", "class"}, file, named.substr(colon));
  }
  if (kind != "causal_lm") return;
  std::string config = text_at(model, "config");
  if (config.empty()) config = text_at(model, "path");
  if (const std::filesystem::path file = config_in(config); !file.empty())
    carrier.add({"model", "config"}, file);
}

void set_at(Json& job, const Json::Array& place, const std::string& value) {
  Json* at = &job;
  for (const Json& key : place) at = &(*at)[key.string()];
  *at = value;
}

/// "FILE.py" of the module, which is that of the run: itself, or its copy.
std::string own_file(const std::string& named, const std::string& copy,
                     const std::string& sha256) {
  std::error_code none;
  if (!std::filesystem::exists(named, none)) return copy;
  if (sha256_of(real_files().read(named)) == sha256) return named;
  throw Error(
      ErrorKind::request,
      {.code = "predict.module_changed",
       .what = "cannot make predictions",
       .where = named,
       .why = "the module of the model has changed since the model was trained",
       .next = "restore the module from " + copy + ", or train again"});
}

}  // namespace

Json carry_files(const Job& job, const std::filesystem::path& folder) {
  Carrier carrier(folder);
  if (const Json* fields = job.document.find("fields"))
    for (const auto& [name, field] : fields->object())
      if (const Json* tokens =
              field.is_object() ? field.find("tokens") : nullptr)
        if (tokens->is_object()) carry_tokenizer(name, *tokens, carrier);
  if (const Json* model = job.document.find("model"))
    carry_model(*model, carrier);
  return std::move(carrier).list();
}

void use_carried_files(const Json& carried, const std::filesystem::path& folder,
                       Json& job) {
  for (const Json& entry : carried.array()) {
    const Json::Array& place = entry.find("setting")->array();
    const std::string copy = folder / entry.find("file")->string();
    const Json* suffix = entry.find("suffix");
    if (suffix == nullptr) {
      set_at(job, place, copy);
      continue;
    }
    const std::string named = text_at(*job.find("model"), "class");
    const std::string file = own_file(named.substr(0, named.rfind(':')), copy,
                                      entry.find("sha256")->string());
    set_at(job, place, file + suffix->string());
  }
}

}  // namespace penstock
