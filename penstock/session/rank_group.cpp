#include "penstock/session/rank_group.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

/// Below this share of the time, ranks count as equally fast: that much comes
/// from the scheduler of the system.
constexpr double kLeastShare = 0.05;

Nanoseconds median_worked(const std::vector<Ballot>& ballots) {
  std::vector<Nanoseconds> all;
  for (const Ballot& one : ballots) all.push_back(one.worked);
  // The lower one of two: of two ranks the faster is the measure.
  const auto middle = all.begin() + (std::ssize(all) - 1) / 2;
  std::ranges::nth_element(all, middle);
  return *middle;
}

double as_double(Nanoseconds time) { return static_cast<double>(time.count()); }

}  // namespace

Vote counted(std::vector<Ballot> ballots) {
  Vote vote;
  for (const Ballot& one : ballots) {
    vote.no_memory |= one.no_memory;
    vote.stop |= one.stop;
    vote.save |= one.save;
    vote.counted += one.counted;
    vote.loss += one.loss;
  }
  vote.ballots = std::move(ballots);
  return vote;
}

const char* SlowRanks::Lost::cause() const {
  if (input > std::max(processor, compute)) return "input";
  return processor > compute ? "processor" : "compute";
}

void SlowRanks::add(const Vote& vote) {
  const auto last = std::ranges::max_element(vote.ballots, {}, &Ballot::worked);
  const Nanoseconds late = last->worked - median_worked(vote.ballots);
  const Nanoseconds by_input = std::min(late, last->input);
  const Nanoseconds by_processor = std::min(late - by_input, last->queued);
  Lost& lost = lost_[static_cast<int>(last - vote.ballots.begin())];
  lost.input += by_input;
  lost.processor += by_processor;
  lost.compute += late - by_input - by_processor;
  auto least = [&](Nanoseconds Ballot::*part) {
    return (*std::ranges::min_element(vote.ballots, {}, part)).*part;
  };
  const Nanoseconds waited = least(&Ballot::waited);
  network_ += waited;
  voted_ += least(&Ballot::voted);
  all_ += last->worked + waited;
  ++votes_;
}

SlowRanks::Slowest SlowRanks::slowest() const {
  if (all_ <= Nanoseconds(0)) return {};
  Slowest found;
  for (const auto& [rank, lost] : lost_) {
    const double share = as_double(lost.all()) / as_double(all_);
    if (share > found.share)
      found = {.rank = rank, .cause = lost.cause(), .share = share};
  }
  const double network = as_double(network_) / as_double(all_);
  if (network > found.share) found = {.cause = "network", .share = network};
  return found.share < kLeastShare ? Slowest{} : found;
}

double SlowRanks::vote_milliseconds() const {
  if (votes_ == 0) return 0;
  return as_double(voted_) / static_cast<double>(votes_) / 1e6;
}

Nanoseconds RankGroup::waiting(Nanoseconds queued,
                               const std::function<void()>& together) {
  const Nanoseconds start = wall_clock().now();
  together();
  const Nanoseconds took = wall_clock().now() - start;
  return took - std::min(took, queue_.now() - queued);
}

const Vote& RankGroup::vote(const Share& share) {
  const Nanoseconds start = wall_clock().now();
  Ballot mine = std::exchange(wish_, {});
  mine.no_memory = share.no_memory;
  mine.counted = share.counted;
  mine.loss = share.loss;
  mine.worked = start - began_ - (mine.waited - mine.voted);
  const Nanoseconds queued = std::exchange(queued_, queue_.now());
  mine.queued = queued_ - queued;
  wish_.voted = wish_.waited =
      waiting(queued_, [&] { last_ = counted(exchange(mine)); });
  began_ = start + wish_.voted;
  slow_.add(last_);
  ++votes_;
  return last_;
}

void RankGroup::sum(std::span<const TensorView> tensors) {
  for (const TensorView& one : tensors) summed_bytes_ += one.bytes();
  wish_.waited += waiting(queue_.now(), [&] { add_up(tensors); });
}

std::string RankGroup::waits_for() const {
  const SlowRanks::Slowest slowest = slow_.slowest();
  if (slowest.cause.empty()) return {};
  if (slowest.rank < 0) return "the " + slowest.cause;
  const auto at = static_cast<std::size_t>(slowest.rank);
  return "rank " + std::to_string(slowest.rank) +
         (at < facts_.hosts.size() ? " on " + facts_.hosts[at] : "") + " (" +
         slowest.cause + ")";
}

Json RankGroup::report_json() const {
  Json json;
  json["world"] = rank().world;
  json["backend"] = facts_.backend;
  json["launcher"] = facts_.place.launcher;
  json["hosts"] = Json::Array{};
  for (const std::string& host : facts_.hosts) json["hosts"].push_back(host);
  // What a rank sends of so many bytes in a sum over a ring.
  const double world = rank().world;
  const double sent =
      static_cast<double>(summed_bytes_) * 2 * (world - 1) / world +
      static_cast<double>(votes_) * sizeof(Ballot) * (world - 1);
  json["bytes_per_step"] = votes_ == 0 ? 0 : sent / static_cast<double>(votes_);
  json["vote_ms"] = slow_.vote_milliseconds();
  const SlowRanks::Slowest slowest = slow_.slowest();
  json["slowest"] = Json();
  if (!slowest.cause.empty()) {
    Json& shown = json["slowest"];
    const auto at = static_cast<std::size_t>(slowest.rank);
    const bool one = slowest.rank >= 0 && at < facts_.hosts.size();
    shown["rank"] = one ? Json(slowest.rank) : Json();
    shown["host"] = one ? Json(facts_.hosts[at]) : Json();
    shown["cause"] = slowest.cause;
    shown["share"] = slowest.share;
  }
  json["lost"] = Json::Array{};
  return json;
}

}  // namespace penstock
