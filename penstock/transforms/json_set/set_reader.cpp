#include "penstock/transforms/json_set/set_reader.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace penstock {

SetReader::SetReader(const JsonSet& set)
    : set_(set),
      slots_(set),
      fast_(slots_),
      reference_(slots_),
      elements_(slots_.names.size()) {}

std::optional<JsonFault> SetReader::read(std::string_view text,
                                         std::size_t readable_behind) {
  if (readable_behind < FastJson::kReadsBehind) {
    padded_.resize(text.size() + FastJson::kReadsBehind);
    std::copy(text.begin(), text.end(), padded_.begin());
    text = std::string_view(padded_.data(), text.size());
  }
  if (!fast_.parse(text, elements_))
    if (auto fault = reference_.parse(text, elements_)) return fault;
  if (auto fault = check_required()) return fault;
  auto max = static_cast<std::size_t>(set_.max);
  if (set_.overflow == JsonSet::Overflow::error && elements_.count > max)
    return JsonFault{-1, "holds " + std::to_string(elements_.count) +
                             " elements, expected at most " +
                             std::to_string(max) + " (overflow is \"error\")"};
  choose();
  return std::nullopt;
}

bool SetReader::too_short() const {
  return elements_.count < static_cast<std::size_t>(set_.min);
}

std::optional<JsonFault> SetReader::check_required() const {
  for (std::size_t i = 0; i < elements_.count; ++i)
    for (std::size_t slot : slots_.required)
      if (elements_.held[i * elements_.slots + slot] == Held::missing)
        return JsonFault{-1,
                         "element [" + std::to_string(i) + "] has no '" +
                             slots_.names[slot] +
                             "', or has null for it, and the key is required"};
  return std::nullopt;
}

// Ties are broken by list order, so that std::sort, which takes no memory,
// orders as a stable sort would.
void SetReader::choose() {
  kept_count_ = std::min(elements_.count, static_cast<std::size_t>(set_.max));
  if (!slots_.sort_by) return;
  order_.resize(elements_.count);
  std::iota(order_.begin(), order_.end(), 0u);
  const double* by = elements_.values.data() + *slots_.sort_by;
  std::size_t stride = elements_.slots;
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    double x = by[a * stride], y = by[b * stride];
    if (std::isnan(x) || std::isnan(y))
      return std::isnan(x) && std::isnan(y) ? a < b : !std::isnan(x);
    return x != y ? x > y : a < b;
  });
}

void SetReader::append_to(Bytes& run) const {
  std::size_t at = run.size();
  std::size_t keys = slots_.keys, slots = elements_.slots;
  run.resize(at + (1 + kept_count_ * keys) * sizeof(double));
  auto* to = reinterpret_cast<double*>(run.mutable_data<std::byte>() + at);
  *to++ = static_cast<double>(kept_count_);
  const double* from = elements_.values.data();
  if (!slots_.sort_by && keys == slots) {
    std::copy(from, from + kept_count_ * keys, to);
    return;
  }
  for (std::size_t i = 0; i < kept_count_; ++i, to += keys) {
    std::size_t element = slots_.sort_by ? order_[i] : i;
    std::copy(from + element * slots, from + element * slots + keys, to);
  }
}

}  // namespace penstock
