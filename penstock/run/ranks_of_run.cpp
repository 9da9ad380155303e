#include "penstock/run/ranks_of_run.h"

#include <algorithm>
#include <map>

#include "penstock/base/host_limits.h"
#include "penstock/run/newest_run.h"

namespace penstock {

std::unique_ptr<RankGroup> join_ranks(const Job& job,
                                      const std::optional<OwnTrainer>& own) {
  if (job.model.kind == "own")
    return own && own->open_ranks ? own->open_ranks(job) : nullptr;
  const std::optional<RankPlace> place = rank_place();
  return place ? open_ranks_of(*place) : nullptr;
}

int ranks_that_share(int rank, const std::vector<std::string>& hosts,
                     const std::vector<std::string>& processors) {
  const auto mine = static_cast<std::size_t>(rank);
  int sharing = 0;
  for (std::size_t other = 0; other < hosts.size(); ++other)
    sharing +=
        hosts[other] == hosts[mine] && processors[other] == processors[mine];
  return sharing;
}

Job with_share_of_processors(Job job, RankGroup* ranks) {
  if (ranks == nullptr) return job;
  const int here = ranks_that_share(ranks->rank().rank, ranks->facts().hosts,
                                    ranks->gather(read_cpu_affinity()));
  const int share = std::max(1, static_cast<int>(read_cpu_limit()) / here);
  if (job.model.learning.threads == 0) job.model.learning.threads = share;
  if (!job.loading.cpus && !job.loading.workers) job.loading.cpus = share;
  return job;
}

std::string run_to_resume(const Job& job, const TrainOptions& options) {
  if (!options.resume_newest) return options.resume;
  std::string found;
  if (writes_for_all(options.ranks))
    found = newest_run_or_begin(job, options.or_begin);
  if (options.ranks != nullptr) found = options.ranks->gather(found).front();
  if (options.listener.note)
    options.listener.note(found.empty()
                              ? job.output.dir +
                                    " holds no run of this job: a new one "
                                    "begins"
                              : "the newest run of this job is " + found);
  return found;
}

std::optional<std::pair<int, int>> ranks_of_one_gpu(
    const std::vector<std::string>& addresses,
    const std::vector<std::string>& hosts) {
  std::map<std::pair<std::string, std::string>, int> first;
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (addresses[rank].empty()) continue;
    const auto [known, added] = first.try_emplace(
        {hosts[rank], addresses[rank]}, static_cast<int>(rank));
    if (!added) return std::pair(known->second, static_cast<int>(rank));
  }
  return std::nullopt;
}

void check_devices(const Device& device, RankGroup* ranks) {
  if (ranks == nullptr) return;
  if (device.memory_kind() == MemoryKind::sim)
    throw Error(ErrorKind::request,
                {.code = "ranks.on_sim",
                 .what = "cannot run several ranks on the simulated device",
                 .where = "device",
                 .why = "\"sim\" simulates the time of one accelerator, and "
                        "each rank would have a time of its own",
                 .next = "start one process, or set \"device\" to \"auto\""});
  const std::vector<std::string>& hosts = ranks->facts().hosts;
  const auto both = ranks_of_one_gpu(ranks->gather(device.pci_bus_id()), hosts);
  if (!both) return;
  throw Error(
      ErrorKind::request,
      {.code = "ranks.same_gpu",
       .what = "two ranks have the same GPU",
       .where = "rank " + std::to_string(both->first) + " and rank " +
                std::to_string(both->second) + " on " +
                hosts[static_cast<std::size_t>(both->first)],
       .why = "each rank needs a GPU of its own, and both use " + device.name(),
       .next = "start as many ranks on a machine as it has GPUs, each with its "
               "own LOCAL_RANK, and leave out device.number; or set "
               "\"device\" to \"cpu\""});
}

std::filesystem::path run_of(const RunFolder& folder, const RankGroup* ranks) {
  return writes_for_all(ranks) ? folder.path()
                               : folder.path().parent_path().parent_path();
}

}  // namespace penstock
