#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "penstock/base/json.h"
#include "penstock/job/job.h"
#include "penstock/run/generated_texts.h"

namespace penstock {

/// The texts that a model of text wrote at the last validations of a run. One
/// thread.
class SampleTexts {
 public:
  /// Of validations: the newest are kept.
  static constexpr std::size_t kMost = 20;

  /// `job` outlives it.
  explicit SampleTexts(const Job& job) : job_(job) {}
  /// Puts texts in the place of the tokens in `details`, which the model gave
  /// after a validation, and those of the validations before in front of them:
  /// "texts": [{"epoch", "step", "texts": [{"sample", "prompt", "text"}]}].
  /// Details without texts stay unchanged. A tokenizer that cannot be read is
  /// logged, and there are no texts then.
  void add(Json& details, std::int64_t epoch, std::int64_t step);

 private:
  Json shown(const Json& texts) const;

  const Job& job_;
  std::optional<GeneratedTexts> tokens_;  // from the first texts on
  Json::Array validations_;
};

}  // namespace penstock
