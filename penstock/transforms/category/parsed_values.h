#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/transforms/category/category.h"
#include "penstock/transforms/category/vocabulary.h"

namespace penstock {

/// All values of a source, where each row says by a number which of them it
/// holds; null: its rows hold the values themselves.
using Codes = std::shared_ptr<const std::vector<std::string>>;

/// What parses the rows of column `column` of a block; `settings` outlive it.
std::unique_ptr<FieldParser> category_parser(const Category& settings,
                                             std::size_t column, ClassType type,
                                             Codes codes);

/// The value of a parsed row; none where it is missing.
std::optional<std::string_view> value_of(ValueRow row, const Codes& codes);

constexpr std::int32_t kNoCode = -1;
/// Of a parsed row with a code: that, or kNoCode where it is missing.
std::int32_t code_in(ValueRow row);

}  // namespace penstock
