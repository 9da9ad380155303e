#pragma once

#include <cstdint>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/models/causal_lm/network.h"

namespace penstock {

/// The token that is chosen from how likely each is, [vocabulary] on the host:
/// the first of the likeliest at temperature 0, else one that is drawn from
/// those which `top_p` leaves. What is drawn depends on `random` alone.
std::int64_t chosen_token(const at::Tensor& logits, const Generation& settings,
                          Random random);

/// The tokens that follow a prompt of one token or more, without the one that
/// ends the text. `row` is part of the key of each random number, and so is the
/// token's position.
std::vector<std::int32_t> generated(const DecoderNetwork& network,
                                    const std::vector<std::int32_t>& prompt,
                                    std::int64_t row,
                                    const Generation& settings,
                                    at::Device device);

}  // namespace penstock
