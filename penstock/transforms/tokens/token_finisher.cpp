#include "penstock/transforms/tokens/token_finisher.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace penstock {
namespace {

/// Writes one document, or a piece of one, into each tensor.
template <class Token>
class Finisher final : public FieldFinisher {
 public:
  explicit Finisher(const Tokens& tokens)
      : pad_(tokens.pad_id.value_or(0)),
        bins_(tokens.pack != Tokens::Pack::none),
        no_target_(tokens.masked() ? kNoTarget<Token> : Token{0}) {}

  void finish(std::span<const StoredRow> rows, const DrawKey&,
              std::span<const TensorPlace> to) override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto count = static_cast<std::size_t>(to[0].lengths[r]);
      if (count == 0) continue;
      auto* ids = reinterpret_cast<std::int64_t*>(to[0].row(r));
      auto* labels = reinterpret_cast<std::int64_t*>(to[1].row(r));
      auto* positions = reinterpret_cast<std::int64_t*>(to[2].row(r));
      auto* last = reinterpret_cast<std::int64_t*>(to[3].row(r));
      const StoredRow& row = rows[r];
      if (row.range.sample < 0) {
        std::fill_n(ids, count, pad_);
        std::fill_n(labels, count, kIgnored);
      } else {
        const std::byte* run =
            row.run.data() +
            static_cast<std::size_t>(row.range.begin) * sizeof(Token);
        const auto* from = reinterpret_cast<const Token*>(run);
        for (std::size_t i = 0; i < count; ++i) ids[i] = labels[i] = from[i];
        if (no_target_ != 0) mask(ids, labels, count);
        labels[0] = kIgnored;
      }
      std::iota(positions, positions + count, std::int64_t{0});
      std::fill_n(last, count, bins_ ? row.range.sample : 1);
    }
  }

 private:
  void mask(std::int64_t* ids, std::int64_t* labels, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      if ((ids[i] & no_target_) == 0) continue;
      ids[i] ^= no_target_;
      labels[i] = kIgnored;
    }
  }

  const std::int64_t pad_;
  const bool bins_;
  const Token no_target_;
};

}  // namespace

std::int64_t most_token(const Tokens& tokens) {
  if (tokens.vocab_size > 0) return tokens.vocab_size - 1;
  // One bit says whether it is a target.
  return (std::int64_t{1} << (tokens.masked() ? 31 : 32)) - 1;
}

std::size_t stored_token_bytes(const Tokens& tokens) {
  const std::int64_t most = tokens.masked() ? 1 << 15 : 1 << 16;
  const bool narrow = tokens.vocab_size > 0 && tokens.vocab_size <= most;
  return narrow ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
}

std::vector<Output> token_outputs(const std::string& prefix,
                                  const Tokens& tokens) {
  const bool bins = tokens.pack != Tokens::Pack::none;
  std::vector<Output> outputs;
  auto add = [&](const char* name, std::int64_t padding) {
    outputs.push_back({.name = prefix + name,
                       .dtype = Dtype::int64,
                       .row_shape = {},
                       .lengths = bins ? Lengths::bins : Lengths::padded,
                       .shares = !outputs.empty(),
                       .padding = padding,
                       .most = bins ? 0 : tokens.max_length});
  };
  add("input_ids", tokens.pad_id.value_or(0));
  add("labels", kIgnored);
  add("position_ids", 0);
  if (bins)
    add("document_ids", -1);
  else
    add("attention_mask", 0);
  if (bins) outputs[0].beside = prefix + "cu_seqlens";
  return outputs;
}

std::unique_ptr<FieldFinisher> token_finisher(const Tokens& tokens) {
  if (stored_token_bytes(tokens) == sizeof(std::uint16_t))
    return std::make_unique<Finisher<std::uint16_t>>(tokens);
  return std::make_unique<Finisher<std::uint32_t>>(tokens);
}

}  // namespace penstock
