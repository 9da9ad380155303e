#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/tokens/token_options.h"

namespace penstock {

/// What is no target of the loss, as PyTorch's `ignore_index`.
inline constexpr std::int64_t kIgnored = -100;

/// The bit of a stored token that is no target, where tokens are masked.
template <class Token>
inline constexpr Token kNoTarget =
    static_cast<Token>(Token{1} << (sizeof(Token) * 8 - 1));

/// The largest id that a row may have.
std::int64_t most_token(const Tokens& tokens);

/// Bytes of a stored token.
std::size_t stored_token_bytes(const Tokens& tokens);

/// The tensors of a batch, in the order in which the finisher writes them.
/// `prefix` stands before their names.
std::vector<Output> token_outputs(const std::string& prefix,
                                  const Tokens& tokens);
std::unique_ptr<FieldFinisher> token_finisher(const Tokens& tokens);

}  // namespace penstock
