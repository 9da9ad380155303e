#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {

/// What a model of text makes, as text.
class GeneratedTexts {
 public:
  /// Of the job's field of tokens, whose tokenizer turns them into text, and
  /// whose last token ends one. Throws Error(request), code predict.no_text,
  /// where the job has no such field.
  GeneratedTexts(const Job& job, Generation settings);

  const Generation& settings() const { return settings_; }
  /// Without special tokens; a JSON list of ids where there is no tokenizer.
  std::string text_of(const std::vector<std::int32_t>& tokens) const;

 private:
  Generation settings_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace penstock
