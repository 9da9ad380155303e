#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/transforms/category/vocabulary.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// All values of a source, where each row says by a number which of them it
/// holds; null: its rows hold the values themselves.
using Codes = std::shared_ptr<const std::vector<std::string>>;

/// A column of a block whose values are parsed.
struct ParsedColumn {
  std::string name;
  std::size_t at = 0;
  ClassType type = ClassType::text;
  Codes codes = {};
  bool takes_missing = true;  ///< else a row without a value is bad
};

std::unique_ptr<FieldParser> category_parser(ParsedColumn column);

/// The value of a parsed row; none where it is missing.
std::optional<std::string_view> value_of(ValueRow row, const Codes& codes);

constexpr std::int32_t kNoCode = -1;
/// Of a parsed row with a code: that, or kNoCode where it is missing.
std::int32_t code_in(ValueRow row);

}  // namespace penstock
