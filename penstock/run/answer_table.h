#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// What a model says of rows, as columns: "key"; of one class "prediction", the
/// likeliest, and "p_CLASS" for each; of labels "prediction", a JSON list of
/// those above 0.5, and "p_LABEL" for each; of numbers a column for each.
class AnswerTable {
 public:
  /// `key`: int64 or text. With `texts` a column "text" stands at the end.
  AnswerTable(AnswerFacts facts, ColumnType key, bool texts = false);

  const std::vector<NewColumn>& columns() const { return columns_; }
  /// Adds a row. Its key is a number or a text, as the table has it; NaN
  /// becomes NULL.
  void add(const Json& key, std::span<const double> answers);
  /// The text of the row that was added last.
  void add_text(std::string_view text);
  /// The rows that were added since the last call.
  Block take();

 private:
  void add_class(std::span<const double> answers);
  void add_labels(std::span<const double> answers);

  const AnswerFacts facts_;
  std::vector<NewColumn> columns_;
  Block block_;
};

}  // namespace penstock
