#include "penstock/transforms/mixup/partners.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace penstock {
namespace {

void add_partners(const std::byte* labels, std::byte* to, std::size_t bytes,
                  std::int64_t rows, std::span<const std::int64_t> order) {
  std::memset(to, 0, static_cast<std::size_t>(rows) * bytes);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t partner = order[i + 1 < order.size() ? i + 1 : 0];
    std::memcpy(to + static_cast<std::size_t>(order[i]) * bytes,
                labels + static_cast<std::size_t>(partner) * bytes, bytes);
  }
}

}  // namespace

void MixedTensors::add_labels(const std::vector<Output>& outputs,
                              const std::vector<std::string>& labels,
                              const char* kind, const std::string& path) {
  std::set<std::size_t> seen(uses.begin(), uses.end());
  for (const std::string& name : labels) {
    uses.push_back(find_output(outputs, name, path + ".labels"));
    if (!seen.insert(uses.back()).second)
      refuse_operation(path + ".labels", "'" + name + "' is named twice",
                       std::string("name the tensor once, in '") + kind +
                           "' or in 'labels'");
    adds.push_back(outputs[uses.back()]);
    adds.back().name += "_mixed";
  }
  if (!adds.empty()) adds.push_back({.name = std::string(kind) + "_lambda"});
}

PartnerOperation::PartnerOperation(const std::vector<Output>& outputs,
                                   MixedTensors tensors)
    : BoundOperation(outputs, std::move(tensors.uses), std::move(tensors.adds)),
      mixed_(tensors.mixed) {
  for (std::size_t place : uses()) used_.push_back(outputs[place]);
}

void PartnerOperation::apply(const OperationBatch& batch,
                             OperationScratch& scratch) const {
  constexpr std::uint64_t kPartners = 0x706172746e65;  // "partne"
  std::vector<std::int64_t>& order = scratch.numbers;
  order.assign(batch.live.begin(), batch.live.end());
  Random places = batch.key.random_of_rank(kPartners);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[places.below(left)]);
  for (std::size_t t = 0; t < mixed_; ++t)
    if (order.size() > 1)
      mix(used_[t], batch.tensors[t], order, batch.key, scratch.bytes);
  for (std::size_t t = mixed_; t < used_.size(); ++t)
    add_partners(batch.tensors[t], batch.tensors[t + used_.size() - mixed_],
                 used_[t].bytes(), batch.rows, order);
  if (adds().empty()) return;
  const float share = share_of(batch.key);
  auto* shares = reinterpret_cast<float*>(batch.tensors.back());
  std::fill_n(shares, batch.rows, 0.0F);
  for (std::int64_t row : order) shares[row] = share;
}

}  // namespace penstock
