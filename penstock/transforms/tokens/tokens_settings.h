#pragma once

#include "penstock/base/settings.h"
#include "penstock/transforms/tokens/token_options.h"

namespace penstock {

/// The section of a field of tokens. Reading it loads the tokenizer.
const SettingsTable<Tokens>& tokens_settings();

/// What decides which rows are made of a column. A tokenizer is what is in its
/// file, wherever that is, and what ends documents is an id of it.
Json recipe_of(const Tokens& tokens);

}  // namespace penstock
