#include "penstock/tokenizer/tokenizer.h"

#include <filesystem>

#include "penstock/base/user_file.h"
#include "penstock/tokenizer/recipe_file.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock {
namespace {

bool is_written(const Tokenizer& tokenizer, std::uint32_t id,
                bool skip_special) {
  const Recipe& recipe = tokenizer.recipe();
  return id < recipe.written.size() && recipe.written[id] &&
         !(skip_special && recipe.special[id]);
}

std::string valid(std::string_view bytes) {
  std::string text;
  unicode::append_valid(bytes, text);
  return text;
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& path) {
  std::string json = read_user_file(path, "cannot read the tokenizer");
  std::filesystem::path config =
      std::filesystem::path(path).parent_path() / "tokenizer_config.json";
  std::error_code none;
  Recipe recipe = read_recipe(json, path);
  if (std::filesystem::exists(config, none))
    read_config(read_user_file(config.string(), "cannot read the settings"),
                config.string(), recipe);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(recipe)));
}

std::shared_ptr<const Tokenizer> Tokenizer::parse(std::string_view json,
                                                  std::string_view origin,
                                                  std::string_view config) {
  Recipe recipe = read_recipe(json, origin);
  if (!config.empty()) read_config(config, "tokenizer_config.json", recipe);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(recipe)));
}

Tokenizer::Tokenizer(Recipe recipe)
    : recipe_(std::make_unique<const Recipe>(std::move(recipe))) {}
Tokenizer::~Tokenizer() = default;

std::size_t Tokenizer::vocabulary_size() const {
  return recipe_->written.size();
}

std::optional<std::uint32_t> Tokenizer::id_of(std::string_view token) const {
  return recipe_->ids.find(token);
}

std::optional<std::string> Tokenizer::token_of(std::uint32_t id) const {
  if (id >= recipe_->written.size()) return std::nullopt;
  return recipe_->written[id];
}

std::optional<std::uint32_t> Tokenizer::bos() const { return recipe_->bos; }
std::optional<std::uint32_t> Tokenizer::eos() const { return recipe_->eos; }
std::optional<std::uint32_t> Tokenizer::pad() const { return recipe_->pad; }

const std::string& Tokenizer::fingerprint() const {
  return recipe_->fingerprint;
}

std::string Tokenizer::decode(const std::vector<std::uint32_t>& ids,
                              bool skip_special) const {
  if (recipe_->decoding) {
    Decoding::Run run = recipe_->decoding->begin();
    std::string text;
    for (std::uint32_t id : ids)
      if (is_written(*this, id, skip_special))
        text += run.add(*recipe_->written[id]);
    return text + run.finish();
  }
  std::string bytes;
  for (std::uint32_t id : ids)
    if (is_written(*this, id, skip_special)) bytes += recipe_->bytes[id];
  return valid(bytes);
}

struct Decoder::Inside {
  std::shared_ptr<const Tokenizer> tokenizer;
  bool skip_special;
  std::optional<Decoding::Run> run;
  std::string kept;  // bytes, where there is no run
};

Decoder::Decoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : inside_(std::make_unique<Inside>(
          Inside{std::move(tokenizer), skip_special, {}, {}})) {
  if (const auto& decoding = inside_->tokenizer->recipe().decoding)
    inside_->run = decoding->begin();
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

std::string Decoder::add(std::uint32_t id) {
  const Tokenizer& tokenizer = *inside_->tokenizer;
  if (!is_written(tokenizer, id, inside_->skip_special)) return {};
  if (inside_->run) return inside_->run->add(*tokenizer.recipe().written[id]);
  std::string& kept = inside_->kept;
  kept += tokenizer.recipe().bytes[id];
  std::size_t whole = kept.size() - unicode::unfinished(kept);
  std::string text = valid(std::string_view(kept).substr(0, whole));
  kept.erase(0, whole);
  return text;
}

std::string Decoder::finish() {
  const bool skips = inside_->skip_special;
  std::string text =
      inside_->run ? inside_->run->finish() : valid(inside_->kept);
  *this = Decoder(inside_->tokenizer, skips);
  return text;
}

}  // namespace penstock
