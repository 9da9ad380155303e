#include "penstock/run/sample_texts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock {
namespace {

std::vector<std::int32_t> tokens_in(const Json& ids) {
  std::vector<std::int32_t> tokens;
  for (const Json& id : ids.array())
    tokens.push_back(static_cast<std::int32_t>(id.integer()));
  return tokens;
}

}  // namespace

Json SampleTexts::shown(const Json& texts) const {
  Json all(Json::Array{});
  for (const Json& text : texts.array()) {
    std::vector<std::int32_t> tokens = tokens_in(*text.find("tokens"));
    const std::vector<std::int32_t>& ends = tokens_->settings().ends;
    tokens.erase(std::ranges::find_first_of(tokens, ends), tokens.end());
    Json entry;
    entry["sample"] = *text.find("sample");
    entry["prompt"] = tokens_->text_of(tokens_in(*text.find("prompt")));
    entry["text"] = tokens_->text_of(tokens);
    all.push_back(std::move(entry));
  }
  return all;
}

void SampleTexts::add(Json& details, std::int64_t epoch,
                      std::int64_t step) try {
  const Json* texts = details.is_object() ? details.find("texts") : nullptr;
  if (texts == nullptr) return;
  if (!tokens_) tokens_.emplace(job_, Generation{});
  Json validation;
  validation["epoch"] = epoch;
  validation["step"] = step;
  validation["texts"] = shown(*texts);
  validations_.push_back(std::move(validation));
  if (validations_.size() > kMost) validations_.erase(validations_.begin());
  details["texts"] = Json(validations_);
} catch (const Error& error) {
  log(LogLevel::warning, error.what());
  details["texts"] = Json(Json::Array{});
}

}  // namespace penstock
