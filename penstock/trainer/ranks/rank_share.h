#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/parameter.h"

namespace penstock {

/// What a stepper that is one of several ranks asks of the others, for tensors.
/// Every rank makes the same calls.
class RankShare {
 public:
  explicit RankShare(RankGroup& ranks) : ranks_(ranks) {}
  bool first() const { return ranks_.first(); }

  /// Throws Error(out_of_memory) on all ranks where one has no memory.
  const Vote& vote(const RankGroup::Share& share);
  /// Replaces them by their sums over all ranks.
  void sum(const std::vector<at::Tensor>& tensors);
  /// Replaces them by those of rank 0.
  void copy_from_first(const std::vector<Parameter>& tensors);
  /// Throws Error(device), code "ranks.differ", where a rank has other bytes.
  void check_same(const std::vector<Parameter>& tensors);

  /// What all ranks saw, in the order of `Row::sample`: as one process that
  /// looks at all samples in their order has it.
  template <class Row>
  std::vector<Row> gathered(const std::vector<Row>& mine) {
    static_assert(std::is_trivially_copyable_v<Row>);
    std::vector<Row> all;
    for (const std::string& bytes :
         ranks_.gather({reinterpret_cast<const char*>(mine.data()),
                        mine.size() * sizeof(Row)})) {
      const std::size_t before = all.size();
      all.resize(before + bytes.size() / sizeof(Row));
      if (!bytes.empty())
        std::memcpy(all.data() + before, bytes.data(), bytes.size());
    }
    std::ranges::stable_sort(all, {}, &Row::sample);
    return all;
  }
  /// The same of rows of `width` numbers, of which the first is the sample.
  std::vector<double> gathered(const std::vector<double>& mine,
                               std::int64_t width);
  /// Replaces the numbers by their sums over all ranks.
  void sum(std::vector<double>& numbers);
  /// Puts into the details of a validation, which all ranks have made of the
  /// same rows, what each of them alone holds of its rows: the pictures of
  /// "worst", and the first `most_texts` of "texts", by their samples.
  void merge(Json& details, std::int64_t most_texts);

 private:
  RankGroup& ranks_;
};

/// `mine`, or with several ranks what all of them saw.
template <class Row>
std::vector<Row> of_all_ranks(RankShare* ranks, std::vector<Row> mine) {
  return ranks == nullptr ? std::move(mine) : ranks->gathered(mine);
}

std::vector<at::Tensor> values_of(const std::vector<Parameter>& parameters);

}  // namespace penstock
