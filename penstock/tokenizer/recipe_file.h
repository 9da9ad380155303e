#pragma once

#include <string_view>

#include "penstock/tokenizer/recipe.h"

namespace penstock {

/// Throws Error(request), see Tokenizer::parse.
Recipe read_recipe(std::string_view json, std::string_view origin);
/// Adds bos, eos and pad from a tokenizer_config.json.
void read_config(std::string_view json, std::string_view origin,
                 Recipe& recipe);

}  // namespace penstock
