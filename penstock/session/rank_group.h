#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/json.h"
#include "penstock/base/processor_queue.h"
#include "penstock/base/tensor.h"
#include "penstock/session/rank_place.h"

namespace penstock {

/// What a rank tells the others once in a step, before anything is summed.
struct Ballot {
  bool no_memory = false;  ///< its share of the step did not fit
  bool stop = false;       ///< it was asked to end after this step
  bool save = false;       ///< it was asked for a checkpoint
  /// What its rows count in the step, and the sum of their losses times that.
  double counted = 0, loss = 0;
  Nanoseconds worked{0};  ///< since the vote before, outside of `waited`
  Nanoseconds input{0};   ///< of that, what it waited for its batch
  Nanoseconds queued{0};  ///< of that, ready to run and without a processor
  Nanoseconds voted{0};   ///< in the vote before
  Nanoseconds waited{0};  ///< for the others, in that vote and the sums since
};

/// What any of the ranks says, and what each has said, in their order.
struct Vote {
  bool no_memory = false, stop = false, save = false;
  double counted = 0, loss = 0;  ///< of all, added up in the order of ranks
  std::vector<Ballot> ballots;
};
Vote counted(std::vector<Ballot> ballots);

/// Which ranks the others wait for. A vote or a sum ends when its last rank
/// arrives, so the time that one rank worked longer than the median of all is
/// time that the others lost.
class SlowRanks {
 public:
  /// The cause is the largest part of what made it late: "input", it waited for
  /// its batch; "processor", other programs had its processor; "compute"; or
  /// "network", where even the last rank waits.
  struct Slowest {
    int rank = -1;           ///< of "network": all of them
    std::string cause = {};  ///< empty: all take the same time
    double share = 0;        ///< of all time, lost by waiting for it
  };
  void add(const Vote& vote);
  Slowest slowest() const;
  double vote_milliseconds() const;  ///< of the last rank, the mean

 private:
  struct Lost {
    Nanoseconds input{0}, processor{0}, compute{0};
    Nanoseconds all() const { return input + processor + compute; }
    const char* cause() const;
  };
  std::map<int, Lost> lost_;
  Nanoseconds all_{0}, network_{0}, voted_{0};
  std::int64_t votes_ = 0;
};

/// How the ranks of a job talk to each other.
struct RankGroupFacts {
  RankPlace place;
  std::string backend;             ///< "gloo" or "nccl": what sums gradients
  std::vector<std::string> hosts;  ///< of each rank
};

/// The ranks of a job. Every rank makes the same calls in the same order.
///
/// One thread. A call throws Error "ranks.failed" where another rank has
/// reported an error, and "ranks.lost" where one has vanished; after that, only
/// report() and leave() may be called.
class RankGroup {
 public:
  explicit RankGroup(RankGroupFacts facts) : facts_(std::move(facts)) {}
  virtual ~RankGroup() = default;
  const RankGroupFacts& facts() const { return facts_; }
  const Rank& rank() const { return facts_.place.rank; }
  bool first() const { return rank().rank == 0; }

  /// What this rank says in the next vote besides what it is given there.
  void wish_stop() { wish_.stop = true; }
  void wish_save() { wish_.save = true; }
  void add_input(Nanoseconds waited) { wish_.input += waited; }
  /// What a rank has of the step that it votes on.
  struct Share {
    bool no_memory = false;
    double counted = 0, loss = 0;  ///< see Ballot
  };
  /// Votes on the step that all have computed; the rest of the ballot follows
  /// from what this rank wishes and how long it took.
  const Vote& vote(const Share& share);
  const Vote& last_vote() const { return last_; }

  /// The texts of all ranks in their order: an `Agree` for compare_ranks().
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  /// Replaces the numbers (float32, float64, int64) by their sums over all
  /// ranks, the same bytes on each.
  void sum(std::span<const TensorView> tensors);
  /// Counts bytes that were summed over the ranks without sum().
  void count_sum(std::uint64_t bytes) { summed_bytes_ += bytes; }
  /// Replaces them by those of rank 0.
  virtual void copy_from_first(std::span<const TensorView> tensors) = 0;
  /// Tells the other ranks why this one ends. The first report is kept.
  virtual void report(const std::string& failure) noexcept = 0;
  /// The end, for all ranks together: rank 0, which may serve the store, goes
  /// last. Waits a few seconds at most.
  virtual void leave() noexcept = 0;

  /// What the ranks wait for: "rank 2 on gpu03 (input)", "the network"; empty
  /// where all take the same time.
  std::string waits_for() const;
  /// "ranks" of `report.json`.
  Json report_json() const;

 protected:
  /// For one that has started threads of its own: what they wait for a
  /// processor, this rank waits.
  void count_new_threads() { queue_.add_new_threads(); }
  RankGroupFacts facts_;

 private:
  virtual std::vector<Ballot> exchange(const Ballot& mine) = 0;
  virtual void add_up(std::span<const TensorView> tensors) = 0;
  /// Calls it and returns what it waited for others in it: time in which this
  /// thread was ready to run and had no processor is its own. `queued`: what
  /// queue_ says before.
  Nanoseconds waiting(Nanoseconds queued,
                      const std::function<void()>& together);

  Ballot wish_;
  Vote last_;
  Nanoseconds began_ = wall_clock().now();  // the end of the last vote
  ProcessorQueue queue_;
  Nanoseconds queued_{0};  // queue_ at began_
  SlowRanks slow_;
  std::int64_t votes_ = 0;
  std::uint64_t summed_bytes_ = 0;
};

/// Whether this process writes what a run leaves: rank 0 of several does. Null:
/// it is the only process.
inline bool writes_for_all(const RankGroup* ranks) {
  return ranks == nullptr || ranks->first();
}

}  // namespace penstock
