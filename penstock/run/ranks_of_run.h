#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/session/session.h"

// What a run decides together with the other ranks before it begins. `ranks`:
// null for a run of one process.
namespace penstock {

/// The other ranks, as the environment describes them, or for a job whose model
/// is "own" as `own` finds them; null: this process is alone. Throws what
/// rank_place() and finding them throw.
std::unique_ptr<RankGroup> join_ranks(const Job& job,
                                      const std::optional<OwnTrainer>& own);

/// The job with this rank's share of the machine's processors, where it leaves
/// the number of threads open.
Job with_share_of_processors(Job job, RankGroup* ranks);
/// How many ranks, `rank` included, run on its processors: those of its host
/// that may run on the same ones. Slurm and containers may give each rank some
/// of its own. `processors`: read_cpu_affinity() of each rank.
int ranks_that_share(int rank, const std::vector<std::string>& hosts,
                     const std::vector<std::string>& processors);

/// The run to go on from, as rank 0 finds it; empty: a new one begins. Throws
/// as newest_run_or_begin() does.
std::string run_to_resume(const Job& job, const TrainOptions& options);

/// Throws Error(request): "ranks.same_gpu" where two ranks have one GPU, and
/// "ranks.on_sim" for the simulated device.
void check_devices(const Device& device, RankGroup* ranks);
/// Two ranks of one machine that have the same GPU, by the addresses of their
/// GPUs on its PCI bus; a rank without a GPU has an empty one.
std::optional<std::pair<int, int>> ranks_of_one_gpu(
    const std::vector<std::string>& addresses,
    const std::vector<std::string>& hosts);

/// Does the work of one of several ranks. An error of this rank goes into the
/// store before its connections break, so that the others show it and do not
/// just miss this one.
template <class Work>
auto as_one_of(RankGroup& ranks, Work work) try {
  auto result = work();
  ranks.leave();
  return result;
} catch (...) {
  ranks.report(failure_text(ranks.rank(), std::current_exception()));
  ranks.leave();
  throw;
}

/// The run's own folder, of which a rank that is not the first has a part.
std::filesystem::path run_of(const RunFolder& folder, const RankGroup* ranks);

}  // namespace penstock
