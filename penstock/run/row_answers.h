#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/session/session.h"

namespace penstock {

/// What a model says of some rows, in their order, before it is written.
struct RowAnswers {
  Json::Array keys;                     ///< of the rows that were predicted
  std::vector<double> numbers;          ///< row after row
  std::vector<std::string> texts = {};  ///< by row; empty where none are made
  std::int64_t bad = 0;                 ///< rows that were left out
  std::vector<BadRow> bad_rows = {};    ///< the first of these

  std::int64_t rows() const { return std::ssize(keys); }
  /// Appends the answers of later rows.
  void append(RowAnswers&& more);
};

/// The same as bytes, for another rank of the same build: the length of a JSON
/// document (8 bytes), the document, and the numbers.
std::string bytes_of(const RowAnswers& answers);
/// Throws Error(internal) where they are not such bytes.
RowAnswers row_answers_in(std::string_view bytes);

}  // namespace penstock
