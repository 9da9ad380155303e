#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/transforms/tokens/token_lists.h"
#include "penstock/transforms/tokens/token_notes.h"
#include "penstock/transforms/tokens/token_options.h"

namespace penstock {

/// Token ids of rows that hold them already, beside labels that say which of
/// them are targets. One per thread.
class TokenLabels {
 public:
  /// `tokens` names a column of labels.
  explicit TokenLabels(const Tokens& tokens);

  /// What is wrong with the row; empty: nothing, and ids() holds its tokens,
  /// targets() whether each is one. Fills in what `note` says of them.
  std::string read(const Column& column, const Column& labels, std::int64_t row,
                   DocumentNote& note);
  const std::vector<std::uint32_t>& ids() const { return ids_.ids(); }
  const std::vector<bool>& targets() const { return targets_; }

 private:
  const std::string name_;  // of the column
  TokenLists ids_, labels_;
  std::vector<bool> targets_;
};

}  // namespace penstock
