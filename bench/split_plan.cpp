// How long does it take to plan a batch of a side of a split, when there are
// 10^9 rows, and how many bits does a row cost?
//
// The keys are the integers 0 .. ROWS - 1, 90 % of them train. A batch is
// planned one sample after the other (a walk of the permutation, then a search
// for the sample's row), and all samples together; both give the same ids.
//
//     bench_split_plan [ROWS [REPEATS]]
#include <array>
#include <bit>
#include <numeric>

#include "bench/measure.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

constexpr std::int64_t kBatch = 1 << 16;
constexpr int kSteps = 4;  ///< per repeat

struct Sides {
  SideIndex train{0}, val{0};
};

Sides split(std::int64_t rows) {
  Split split{.train = 0.9, .val = 0.1, .seed = 1};
  std::vector<bool> train(static_cast<std::size_t>(rows));
  for (std::int64_t key = 0; key < rows; ++key) {
    auto bytes = std::bit_cast<std::array<char, 8>>(key);
    train[static_cast<std::size_t>(key)] =
        side_of(split, {bytes.data(), 8}) == Side::train;
  }
  Sides sides{.train = SideIndex(train)};
  train.flip();
  sides.val = SideIndex(train);
  return sides;
}

using Ids = std::vector<SampleId>;

/// The permutation that plan_step uses, so that both give the same ids.
Permutation permutation_of(const Order& order, std::int64_t epoch) {
  Random random(order.seed, static_cast<std::uint64_t>(epoch), 0, 0x6f72646572);
  return Permutation(order.samples, random.next());
}

void one_by_one(const Order& order, const SideIndex& index, Position at,
                Plan& plan, Ids& ids) {
  plan.ranges.clear();
  std::int64_t first = at.step * order.batch_size;
  for (std::int64_t row = 0; row < order.batch_size; ++row)
    plan.ranges.push_back({.sample = first + row});
  Permutation shuffled = permutation_of(order, at.epoch);
  for (SampleRange& range : plan.ranges) range.sample = shuffled(range.sample);
  plan.bin_ends.resize(plan.ranges.size());
  std::iota(plan.bin_ends.begin(), plan.bin_ends.end(), 1);
  ids.clear();
  for (const SampleRange& range : plan.ranges)
    ids.push_back(index.select(range.sample));
}

void together(const Order& order, const SideIndex& index, Position at,
              Plan& plan, Ids& ids) {
  plan_step(order, {}, at, plan);
  ids.clear();
  for (const SampleRange& range : plan.ranges) ids.push_back(range.sample);
  index.select(ids);
}

Json measured(const char* name, const SideIndex& index, int repeats,
              std::int64_t& sum) {
  const Order order{.samples = index.size(), .seed = 1, .batch_size = kBatch};
  const std::int64_t stride = steps_per_epoch(order) / (kSteps * 64);
  auto planned = [&](auto plan_ids) {
    Plan plan;
    Ids ids;
    return [&order, &index, &sum, stride, plan_ids, plan, ids,
            step = std::int64_t{0}]() mutable {
      double seconds = cpu_seconds([&] {
        for (int i = 0; i < kSteps; ++i) {
          step = (step + stride) % steps_per_epoch(order);
          plan_ids(order, index, {.epoch = 1, .step = step}, plan, ids);
          sum += ids.front();
        }
      });
      return seconds / kSteps;
    };
  };
  Plan plan;
  Ids one, all;
  one_by_one(order, index, {.epoch = 2, .step = 1}, plan, one);
  together(order, index, {.epoch = 2, .step = 1}, plan, all);
  PENSTOCK_ASSERT(one == all, "both plans hold the same ids");
  std::vector<Repeats> times =
      in_turns(repeats, {planned(one_by_one), planned(together)});
  Json result;
  result["side"] = name;
  result["samples"] = index.size();
  result["batch_size"] = kBatch;
  result["seconds_one_by_one"] = times[0].json();
  result["seconds_together"] = times[1].json();
  result["times_as_fast"] = times[0].median() / times[1].median();
  result["must_reach"] = "4 times as fast, about 0.010 s";
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 1'000'000'000);
  auto repeats = static_cast<int>(argument(count, arguments, 2, 11));
  Json result = result_of(
      "split_plan",
      "How long does it take to plan a batch of 65,536 samples of a side of a "
      "split of 10^9 rows, and how many bits does a row cost?",
      count, arguments);
  std::int64_t sum = 0;
  Sides sides = split(rows);
  result["rows"] = rows;
  result["bits_per_row"] =
      8 * static_cast<double>(sides.train.memory() + sides.val.memory()) /
      static_cast<double>(rows);
  result["must_reach"] = "at most 2.5 bits per row";
  result["results"].push_back(measured("train", sides.train, repeats, sum));
  result["results"].push_back(measured("val", sides.val, repeats, sum));
  result["checksum"] = sum;
  return finish(result);
}
