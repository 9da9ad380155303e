// How long does it take to pack documents into rows, and how full are they?
//
//     bench_packing [DOCUMENTS [REPEATS]]

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "bench/measure.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

/// Of documents that differ in length as those of a kind do: lognormal.
struct Lengths {
  const char* name;
  double median, sigma;
};
const Lengths kLengths[] = {
    {"web-like", 600, 1.1}, {"SFT-like", 250, 0.8}, {"chat", 800, 0.5}};

std::vector<std::int32_t> drawn(const Lengths& of, std::int64_t count) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Random random(1, 0, i, 0);
    lengths[i] = static_cast<std::int32_t>(
        std::clamp(of.median * std::exp(of.sigma * random.normal()), 1.0, 2e5));
  }
  return lengths;
}

Json measured(const Lengths& of, const std::vector<std::int32_t>& lengths,
              const BinRules& rules, const std::string& how, int repeats) {
  Bins bins;
  auto pack = [&] {
    return wall_seconds([&] { bins = Bins(lengths, rules); });
  };
  const Repeats seconds = in_turns(repeats, {pack}).front();
  Json result;
  result["workload"] =
      std::string(of.name) + ", " + std::to_string(rules.size) + ", " + how;
  result["seconds"] = seconds.json();
  result["documents_per_s"] =
      static_cast<double>(lengths.size()) / seconds.median();
  result["efficiency"] = bins.efficiency();
  result["cut"] = bins.cut();
  result["rows"] = bins.count();
  if (how == "best fit") {
    result["must_reach"] =
        "20e6 documents per second; on web-like lengths "
        "0.999 full";
  }
  return result;
}

/// Batches of 16 that are padded to their longest: how much of an epoch is
/// elements, and how long its plans take.
Json padded(const Lengths& of, std::vector<std::int32_t> lengths,
            LengthGroups::How how, const char* name, int repeats) {
  constexpr std::int32_t kMost = 2048;
  for (std::int32_t& length : lengths) length = std::min(length, kMost);
  Order order{.samples = std::ssize(lengths), .seed = 1, .batch_size = 16};
  if (how != LengthGroups::How::none)
    order.groups = std::make_shared<LengthGroups>(lengths, how, 16);
  double elements = 0, places = 0;
  auto epoch = [&] {
    elements = places = 0;
    Plan plan;
    const std::int64_t steps =
        std::min<std::int64_t>(steps_per_epoch(order), 20'000);
    const double taken = wall_seconds([&] {
      for (std::int64_t step = 0; step < steps; ++step) {
        plan_step(order, {}, {0, step}, plan);
        std::int32_t longest = 0;
        for (const SampleRange& range : plan.ranges) {
          const auto length = lengths[static_cast<std::size_t>(range.sample)];
          elements += length;
          longest = std::max(longest, length);
        }
        places += 16.0 * longest;
      }
    });
    return taken / static_cast<double>(steps);
  };
  Json result;
  result["workload"] = std::string(of.name) + ", padded, " + name;
  result["seconds_per_plan"] = in_turns(repeats, {epoch}).front().json();
  result["efficiency"] = elements / places;
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  Json result = result_of(
      "packing",
      "How long does it take to pack documents into rows, and how full are "
      "they?",
      count, arguments);
  const std::int64_t documents = argument(count, arguments, 1, 1'000'000);
  const auto repeats = static_cast<int>(argument(count, arguments, 2, 5));
  result["documents"] = documents;
  for (const auto& of : kLengths) {
    const std::vector<std::int32_t> lengths = drawn(of, documents);
    for (std::int32_t size : {2048, 8192}) {
      result["results"].push_back(
          measured(of, lengths, {.size = size}, "best fit", repeats));
      result["results"].push_back(measured(of, lengths,
                                           {.size = size, .window = 10'000},
                                           "windows of 10,000", repeats));
      result["results"].push_back(measured(
          of, lengths, {.size = size, .wrapped = true}, "wrapped", repeats));
    }
    using How = LengthGroups::How;
    for (auto [how, name] : {std::pair(How::none, "in any order"),
                             std::pair(How::buckets, "group_by_length"),
                             std::pair(How::hf, "group_by_length: hf")})
      result["results"].push_back(padded(of, lengths, how, name, repeats));
  }
  return finish(result);
}
