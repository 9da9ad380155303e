#include "penstock/run/generated_texts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "penstock/base/json_path.h"

namespace penstock {

namespace {

/// The token that ends each text of the field, where one does.
std::optional<std::uint32_t> end_of(const Json& tokens,
                                    const Tokenizer& tokenizer) {
  const Json* eos = tokens.find("eos");
  if (eos == nullptr) return std::nullopt;
  if (eos->is_string()) return tokenizer.id_of(eos->string());
  return *eos == Json(true) ? tokenizer.eos() : std::nullopt;
}

}  // namespace

GeneratedTexts::GeneratedTexts(const Job& job, Generation settings)
    : settings_(std::move(settings)) {
  const auto field = std::ranges::find_if(job.fields, [](const Field& one) {
    return one.kind->facts().tokens.has_value();
  });
  if (job.model.kind != "causal_lm" || field == job.fields.end())
    throw no_text_error();
  const Json* tokens =
      found_in(job.document, {"fields", field->name, "tokens"});
  const std::string path = text_in(*tokens, {"tokenizer"});
  if (path.empty()) return;
  tokenizer_ = Tokenizer::load(path);
  if (const auto end = end_of(*tokens, *tokenizer_))
    settings_.ends.push_back(static_cast<std::int32_t>(*end));
}

std::string GeneratedTexts::text_of(
    const std::vector<std::int32_t>& tokens) const {
  if (tokenizer_ != nullptr)
    return tokenizer_->decode({tokens.begin(), tokens.end()}, true);
  Json ids(Json::Array{});
  for (std::int32_t id : tokens) ids.push_back(id);
  return ids.dump();
}

}  // namespace penstock
