#include "penstock/tokenizer/recipe_file.h"

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/json.h"
#include "penstock/tokenizer/recipe_parts.h"

namespace penstock {
namespace {

/// Changes whenever the same file gives other ids.
constexpr std::string_view kVersion = "2, Unicode 16.0";

/// Refuses members that mean something we have not heard of.
void check_members(const FileValue& file) {
  if (!file.json().is_object()) file.wrong("an object");
  constexpr std::string_view known[] = {
      "version",       "truncation", "padding", "added_tokens",  "normalizer",
      "pre_tokenizer", "model",      "decoder", "post_processor"};
  for (const auto& [key, value] : file.json().object()) {
    bool listed = false;
    for (std::string_view name : known) listed = listed || name == key;
    if (!listed && !value.is_null()) file.at(key).unknown("this part");
  }
}

Json parsed(std::string_view text, std::string_view origin) {
  try {
    return Json::parse(text, origin);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    parts.code = "tokenizer.file";
    throw Error(ErrorKind::request, std::move(parts));
  }
}

std::optional<std::uint32_t> named_token(const FileValue& config,
                                         std::string_view key,
                                         const Recipe& recipe) {
  FileValue token = config.at(key);
  if (token.json().is_object()) token = token.at("content");
  if (token.is_null()) return std::nullopt;
  return recipe.ids.find(token.text());
}

/// What it adds are tokens, added ones too.
void check_template(const FileValue& part, const Recipe& recipe) {
  for (const std::vector<std::uint32_t>* ids : {&recipe.before, &recipe.behind})
    for (std::uint32_t id : *ids)
      if (id >= recipe.written.size() || !recipe.written[id])
        part.wrong("the post-processor adds the id " + std::to_string(id) +
                       ", which no token has",
                   "get the complete tokenizer.json of this model");
}

}  // namespace

Recipe read_recipe(std::string_view json, std::string_view origin) {
  Json whole = parsed(json, origin);
  FileValue file(whole, origin, "");
  check_members(file);
  Recipe recipe;
  if (file.at("model").is_null())
    file.wrong("the file has no \"model\", so it is not a tokenizer.json",
               "name the tokenizer.json that the model came with");
  read_normalizer(file.at("normalizer"), recipe);
  read_model(file.at("model"), file.at("pre_tokenizer"), recipe);
  read_pre_tokenizer(file.at("pre_tokenizer"), recipe);
  read_post_processor(file.at("post_processor"), recipe);
  read_decoder(file.at("decoder"), recipe);
  read_added_tokens(file.at("added_tokens"), recipe);
  check_template(file.at("post_processor"), recipe);
  Sha256 hash;
  hash.add(kVersion);
  hash.add(json);
  // What an earlier version made of such a file was cut.
  if (!file.at("truncation").is_null()) hash.add("whole documents");
  recipe.fingerprint = hash.hex();
  return recipe;
}

void read_config(std::string_view json, std::string_view origin,
                 Recipe& recipe) {
  Json whole = parsed(json, origin);
  FileValue config(whole, origin, "");
  recipe.bos = named_token(config, "bos_token", recipe);
  recipe.eos = named_token(config, "eos_token", recipe);
  recipe.pad = named_token(config, "pad_token", recipe);
}

}  // namespace penstock
