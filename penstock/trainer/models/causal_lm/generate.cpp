#include "penstock/trainer/models/causal_lm/generate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

namespace penstock {
namespace {

constexpr std::uint64_t kToken = 0x746f6b656e;  // "token", key of Random

/// How many of the likeliest, whose shares are descending, have `top_p` of all
/// together: one at least.
std::size_t kept_by(const std::vector<double>& shares, double top_p) {
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if ((sum += shares[i]) >= top_p) return i + 1;
  return shares.size();
}

}  // namespace

std::int64_t chosen_token(const at::Tensor& logits, const Generation& settings,
                          Random random) {
  if (settings.temperature == 0) return logits.argmax().item<std::int64_t>();
  const at::Tensor likely =
      (logits.to(at::kDouble) / settings.temperature).softmax(0).contiguous();
  const double* share = likely.const_data_ptr<double>();
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(likely.numel()));
  std::iota(tokens.begin(), tokens.end(), 0);
  std::ranges::stable_sort(tokens, std::greater<>(),
                           [&](std::int64_t token) { return share[token]; });
  std::vector<double> shares;
  for (std::int64_t token : tokens) shares.push_back(share[token]);
  shares.resize(kept_by(shares, settings.top_p));
  double left =
      random.uniform() * std::accumulate(shares.begin(), shares.end(), 0.0);
  for (std::size_t i = 0; i < shares.size(); ++i)
    if ((left -= shares[i]) < 0) return tokens[i];
  return tokens[shares.size() - 1];
}

std::vector<std::int32_t> generated(const DecoderNetwork& network,
                                    const std::vector<std::int32_t>& prompt,
                                    std::int64_t row,
                                    const Generation& settings,
                                    at::Device device) {
  const at::NoGradGuard no_graph;
  SeenTokens seen{.most = std::ssize(prompt) + settings.max_tokens};
  std::vector<std::int32_t> made;
  at::Tensor next = at::tensor(prompt, at::kLong).unsqueeze(0).to(device);
  while (std::ssize(made) < settings.max_tokens) {
    const at::Tensor last = network.hidden(next, seen).select(1, -1);
    const std::int64_t token = chosen_token(
        network.logits(last).select(0, 0).to(at::kCPU), settings,
        Random(settings.seed, kToken, static_cast<std::uint64_t>(row),
               static_cast<std::uint64_t>(seen.length)));
    const auto id = static_cast<std::int32_t>(token);
    if (std::ranges::count(settings.ends, id) > 0) break;
    made.push_back(id);
    next = at::tensor({token}, at::kLong).unsqueeze(0).to(device);
  }
  return made;
}

}  // namespace penstock
