#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "penstock/base/user_file.h"
#include "penstock/job/manifest_rules.h"
#include "penstock/sources/sources.h"

// Rules of keys of programs that fine-tune language models: the model, its
// adapters, and the data sets.

namespace penstock {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kModelKeys = {"base_model",
                                             "model_name_or_path"};
const std::vector<std::string> kAdapterKeys = {"adapter", "finetuning_type"};

bool is_there(const std::string& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

std::string member(const Json& of, const char* key, std::string otherwise) {
  const Json* found = of.is_object() ? of.find(key) : nullptr;
  return found != nullptr && found->is_string() ? found->string() : otherwise;
}

/// The tokenizer.json of the model that the manifest names; empty: none.
std::string tokenizer_of(const ManifestJob& job) {
  for (const char* key : {"tokenizer_config", "tokenizer_name_or_path",
                          "base_model", "model_name_or_path"}) {
    const Json* folder = job.other(key);
    if (folder == nullptr || !folder->is_string()) continue;
    const std::string path =
        (fs::path(folder->string()) / "tokenizer.json").string();
    if (is_there(path)) return path;
  }
  return "";
}

/// What a data set holds: texts, or messages.
struct Documents {
  std::string column;
  bool chat = false;
};

/// As Axolotl names kinds; nullopt for those that have no kind here.
std::optional<Documents> documents_of(const Json& entry) {
  const std::string type = member(entry, "type", "");
  if (type == "completion" || type == "pretrain")
    return Documents{
        .column = member(entry, "field", member(entry, "text_column", "text"))};
  if (type == "chat_template")
    return Documents{.column = member(entry, "field_messages", "messages"),
                     .chat = true};
  if (type == "sharegpt")
    return Documents{.column = member(entry, "field_messages", "conversations"),
                     .chat = true};
  return std::nullopt;
}

/// The files become the source, and a field of tokens reads them.
void use_documents(ManifestJob& job, ManifestKey& of,
                   const std::vector<std::string>& paths,
                   const Documents& documents) {
  for (const std::string& path : paths)
    if (!is_there(path))
      return leave_out(of, "there is no '" + path +
                               "' on this machine: download it, and write its "
                               "path ('penstock datasets' lists what is here)");
  const std::string tokenizer = tokenizer_of(job);
  if (tokenizer.empty())
    return leave_out(of,
                     "the model's folder, which has its tokenizer.json, is not "
                     "on this machine");
  const Json source =
      source_section(parse_source_spec(Json(paths.front()), of.key));
  for (const auto& [key, value] : source.object())
    if (key != "path" || paths.size() == 1) job.set(of, "source." + key, value);
  if (paths.size() > 1) {
    Json all(Json::Array{});
    for (const std::string& path : paths) all.push_back(path);
    job.set(of, "source.path", std::move(all));
  }
  Json tokens;
  tokens["column"] = documents.column;
  tokens["tokenizer"] = tokenizer;
  if (documents.chat)
    tokens["chat"] = true;
  else
    tokens["eos"] = true;
  job.set(of, "fields.tokens.tokens", std::move(tokens));
}

bool has_own_data(const ManifestJob& job, ManifestKey& of) {
  if (job.at("fields") == nullptr && job.at("source") == nullptr &&
      job.at("sources") == nullptr)
    return false;
  of.why = "the job's own 'source' and 'fields' are used";
  return true;
}

/// As LLaMA-Factory's dataset_info.json describes it.
std::optional<Documents> described(const ManifestJob& job, const Json& entry) {
  const Json* columns = entry.is_object() ? entry.find("columns") : nullptr;
  const Json none;
  const Json& named = columns == nullptr ? none : *columns;
  if (member(entry, "formatting", "alpaca") == "sharegpt")
    return Documents{.column = member(named, "messages", "conversations"),
                     .chat = true};
  const Json* stage = job.other("stage");
  if (stage != nullptr && *stage == Json("pt"))
    return Documents{.column = member(named, "prompt", "text")};
  return std::nullopt;
}

}  // namespace

void manifest_base_model(ManifestJob& job, ManifestKey& of) {
  const std::string path = text_of(of);
  if (job.at("model") != nullptr) {
    of.why = "the job's section 'model' is used";
    return;
  }
  if (!is_there(path))
    return leave_out(of, "there is no folder '" + path +
                             "' on this machine: download the model ('hf "
                             "download " +
                             path +
                             " --local-dir FOLDER'), and write its path");
  job.set(of, "model.kind", "causal_lm");
  job.set(of, "model.path", path);
}

void manifest_data_sets(ManifestJob& job, ManifestKey& of) {
  if (has_own_data(job, of)) return;
  const std::vector<Json> entries =
      of.value.is_array() ? of.value.array() : std::vector<Json>{of.value};
  if (entries.empty())
    refuse_manifest(of.key, "the list is empty", "name a data set");
  std::vector<std::string> paths;
  std::optional<Documents> all;
  for (const Json& entry : entries) {
    const Json as_entry =
        entry.is_string() ? Json(Json::Object{{"path", entry}}) : entry;
    std::optional<Documents> documents = documents_of(as_entry);
    if (!documents && of.key.ends_with("pretraining_dataset"))
      documents = Documents{.column = member(as_entry, "text_column", "text")};
    if (!documents)
      return leave_out(of, "data sets of type " +
                               Json(member(as_entry, "type", "")).dump() +
                               " are not read: chat_template, sharegpt and "
                               "completion are");
    if (all &&
        (all->column != documents->column || all->chat != documents->chat))
      return leave_out(of,
                       "its data sets have different columns or types: write "
                       "'sources' into a job file");
    all = documents;
    paths.push_back(member(as_entry, "path", ""));
  }
  use_documents(job, of, paths, *all);
}

void manifest_named_data_set(ManifestJob& job, ManifestKey& of) {
  if (has_own_data(job, of)) return;
  const Json* folder = job.other("dataset_dir");
  const fs::path at = folder != nullptr && folder->is_string()
                          ? folder->string()
                          : std::string("data");
  const fs::path about = at / "dataset_info.json";
  const std::string name = text_of(of);
  if (!is_there(about.string()))
    return leave_out(of, "there is no " + about.string() + " on this machine");
  const Json info = Json::parse(
      read_user_file(about.string(), "cannot read the list of data sets"),
      about.string());
  const Json* entry = info.is_object() ? info.find(name) : nullptr;
  if (entry == nullptr)
    return leave_out(of, about.string() + " has no data set '" + name +
                             "'; several cannot be named");
  const std::string file = member(*entry, "file_name", "");
  if (file.empty())
    return leave_out(of, about.string() + " names no file of '" + name +
                             "': download it, and add its file_name");
  const std::optional<Documents> documents = described(job, *entry);
  if (!documents)
    return leave_out(of,
                     "data sets in the format alpaca are not read: write "
                     "messages, and \"formatting\": \"sharegpt\"");
  use_documents(job, of, {(at / file).string()}, *documents);
}

void manifest_stage(ManifestJob&, ManifestKey& of) {
  if (of.value == Json("sft") || of.value == Json("pt") || is_off(of.value))
    of.why = "it is what causal_lm is trained for";
  else
    leave_out(of, "language models learn the next token here, and no rewards");
}

void manifest_packing(ManifestJob& job, ManifestKey& of) {
  const char* pack = is_true(of) ? "best_fit" : "none";
  for (const std::string& name : job.fields_of("tokens"))
    job.set(of, "fields." + name + ".tokens.pack", pack);
  if (of.settings.empty())
    of.why = "no field of the job is of the kind 'tokens'";
}

void manifest_adapter(ManifestJob& job, ManifestKey& of) {
  const std::string kind = is_off(of.value) ? "full" : text_of(of);
  if (kind == "full") {
    of.why = "all weights are trained, unless the job's model has \"lora\"";
    return;
  }
  if (kind != "lora" && kind != "qlora")
    return leave_out(of,
                     "adapters are LoRA's; without \"lora\" all weights "
                     "are trained");
  if (kind == "qlora") job.set(of, "model.quantize", "nf4");
  if (job.at("model.lora") == nullptr)
    job.set(of, "model.lora", Json(Json::Object{}));
  else if (of.why.empty())
    of.why = "the model has \"lora\" already";
}

namespace {

void set_lora(ManifestJob& job, ManifestKey& of, const std::string& setting,
              Json value) {
  const Json* kind = job.first_of(kAdapterKeys);
  if (kind != nullptr && *kind != Json("lora") && *kind != Json("qlora"))
    of.why = "no LoRA adapter is trained";
  else
    job.set(of, "model.lora." + setting, std::move(value));
}

/// Names with commas between them, as a list.
Json listed(const std::string& text) {
  Json names(Json::Array{});
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, comma - begin);
    std::erase(name, ' ');
    if (!name.empty()) names.push_back(std::move(name));
    begin = comma + 1;
  }
  return names;
}

}  // namespace

ManifestRule of_lora(std::string setting) {
  return [setting = std::move(setting)](ManifestJob& job, ManifestKey& of) {
    set_lora(job, of, setting, of.value);
  };
}

namespace {

bool trains_adapters(const ManifestJob& job) {
  if (const Json* kind = job.first_of(kAdapterKeys))
    return *kind == Json("lora") || *kind == Json("qlora");
  return job.at("model.lora") != nullptr ||
         job.first_of({"lora_r", "lora_rank", "r", "lora_alpha",
                       "lora_target_modules", "lora_target",
                       "target_modules"}) != nullptr;
}

bool wants_four_bits(const ManifestJob& job) {
  const Json *four = job.other("load_in_4bit"),
             *bits = job.other("quantization_bit"),
             *kind = job.first_of(kAdapterKeys);
  return (four != nullptr && *four == Json(true)) ||
         (bits != nullptr && *bits == Json(4)) ||
         (kind != nullptr && *kind == Json("qlora"));
}

constexpr const char* kNotQuantised = "no weights are quantised";

}  // namespace

/// `load_in_4bit`, or the number of bits.
void manifest_four_bits(ManifestJob& job, ManifestKey& of) {
  if (is_off(of.value)) {
    of.why = kNotQuantised;
  } else if (of.value != Json(true) && of.value != Json(4)) {
    leave_out(of, "weights of " + of.value.dump() +
                      " bits are not supported, only those of four");
  } else if (!trains_adapters(job)) {
    leave_out(of,
              "four-bit weights need adapters on top of them: \"adapter\": "
              "\"qlora\"");
  } else {
    job.set(of, "model.quantize", "nf4");
  }
}

void manifest_four_bit_type(ManifestJob&, ManifestKey& of) {
  if (of.value == Json("nf4") || is_off(of.value))
    of.why = "four-bit weights are supported as nf4";
  else
    leave_out(of,
              "four-bit weights are supported as nf4, not " + of.value.dump());
}

void manifest_double_quantization(ManifestJob& job, ManifestKey& of) {
  if (wants_four_bits(job) && trains_adapters(job))
    job.set(of, "model.bnb_4bit_use_double_quant", is_true(of));
  else
    of.why = kNotQuantised;
}

/// "bfloat16", or "torch.bfloat16".
void manifest_compute_dtype(ManifestJob& job, ManifestKey& of) {
  if (!wants_four_bits(job) || !trains_adapters(job)) {
    of.why = kNotQuantised;
    return;
  }
  std::string type = text_of(of);
  if (type.starts_with("torch.")) type.erase(0, 6);
  if (type == "auto")
    of.why = "train.precision says in which type weights are multiplied";
  else
    job.set(of, "model.bnb_4bit_compute_dtype", type);
}

/// A list, "all", or names with commas between them.
void manifest_lora_targets(ManifestJob& job, ManifestKey& of) {
  if (of.value == Json(true) || of.value == Json("all") ||
      of.value == Json("all-linear"))
    set_lora(job, of, "target_modules", "all-linear");
  else if (is_off(of.value))
    of.why = "no layers are named: q_proj and v_proj have adapters by default";
  else
    set_lora(job, of, "target_modules",
             of.value.is_string() ? listed(of.value.string()) : of.value);
}

}  // namespace penstock
