#include "penstock/transforms/tokens/token_labels.h"

#include <algorithm>

#include "penstock/transforms/tokens/token_finisher.h"

namespace penstock {

TokenLabels::TokenLabels(const Tokens& tokens)
    : name_(tokens.labels),
      ids_(most_token(tokens)),
      labels_(most_token(tokens), TokenLists::Of::labels) {}

std::string TokenLabels::read(const Column& column, const Column& labels,
                              std::int64_t row, DocumentNote& note) {
  if (!column.valid(row)) return "is NULL, expected a list of token ids";
  const std::string of_labels = "column '" + name_ + "' ";
  if (!labels.valid(row))
    return of_labels + "is NULL, expected a list of labels";
  if (std::string why = ids_.read(column, row); !why.empty()) return why;
  if (std::string why = labels_.read(labels, row); !why.empty())
    return of_labels + (why.starts_with("label") ? "is wrong: " + why : why);
  const std::vector<std::uint32_t>&ids = ids_.ids(), &found = labels_.ids();
  if (ids.size() != found.size())
    return of_labels + "has " + std::to_string(found.size()) +
           " labels, expected one for each of " + std::to_string(ids.size()) +
           " tokens";
  targets_.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    targets_[i] = found[i] != TokenLists::kNoLabel;
    if (targets_[i] && found[i] != ids[i])
      return of_labels + "is wrong: label " + std::to_string(i) + " is " +
             std::to_string(found[i]) +
             ", expected -100 or the token itself, " + std::to_string(ids[i]);
  }
  note.targets = static_cast<std::int32_t>(std::ranges::count(targets_, true));
  return {};
}

}  // namespace penstock
