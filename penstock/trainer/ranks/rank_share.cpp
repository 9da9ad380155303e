#include "penstock/trainer/ranks/rank_share.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/trainer/borrowed.h"

namespace penstock {
namespace {

std::string sha256_of_numbers(const std::vector<Parameter>& tensors) {
  Sha256 hash;
  for (const Parameter& one : tensors) {
    const at::Tensor host = one.value.detach().cpu();
    const TensorView view = numbers_of(host);
    hash.add(std::span(view.data, view.bytes()));
  }
  return hash.hex();
}

}  // namespace

std::vector<at::Tensor> values_of(const std::vector<Parameter>& parameters) {
  std::vector<at::Tensor> values;
  for (const Parameter& one : parameters) values.push_back(one.value);
  return values;
}

const Vote& RankShare::vote(const RankGroup::Share& share) {
  const Vote& vote = ranks_.vote(share);
  if (!vote.no_memory) return vote;
  std::string short_ones;
  for (std::size_t i = 0; i < vote.ballots.size(); ++i)
    if (vote.ballots[i].no_memory)
      short_ones += (short_ones.empty() ? "rank " : ", rank ") +
                    std::to_string(i) + " on " + ranks_.facts().hosts[i];
  throw Error(ErrorKind::out_of_memory,
              {.code = "trainer.out_of_memory",
               .what = "out of memory while taking a step of the model",
               .where = short_ones,
               .why = "the share of the batch does not fit there",
               .next = "use a smaller loader.batch_size, or more ranks"});
}

void RankShare::sum(const std::vector<at::Tensor>& tensors) {
  std::vector<TensorView> views;
  for (const at::Tensor& one : tensors) views.push_back(numbers_of(one));
  ranks_.sum(views);
}

void RankShare::copy_from_first(const std::vector<Parameter>& tensors) {
  std::vector<TensorView> views;
  for (const Parameter& one : tensors)
    views.push_back(numbers_of(one.value.detach()));
  ranks_.copy_from_first(views);
}

void RankShare::check_same(const std::vector<Parameter>& tensors) {
  const std::vector<std::string> all =
      ranks_.gather(sha256_of_numbers(tensors));
  const auto other = std::ranges::find_if(
      all, [&](const std::string& one) { return one != all.front(); });
  if (other == all.end()) return;
  const auto rank = static_cast<std::size_t>(other - all.begin());
  throw Error(
      ErrorKind::device,
      {.code = "ranks.differ",
       .what = "the ranks do not hold the same weights",
       .where =
           "rank " + std::to_string(rank) + " on " + ranks_.facts().hosts[rank],
       .why = "the SHA-256 of its weights is " + *other + ", that of rank 0 " +
              all.front(),
       .next = "check the memory of that machine ('penstock doctor'), then "
               "start all ranks again with --resume latest"});
}

}  // namespace penstock
