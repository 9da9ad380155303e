#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "penstock/sampling/sampling.h"

namespace penstock {

/// Which of the processes that train one job together this one is, as torchrun,
/// srun, mpirun or variables that were set by hand describe it.
struct RankPlace {
  Rank rank;
  int local_rank = 0;   ///< among the processes of this machine
  int local_world = 1;  ///< processes of this machine
  /// "torchrun", "srun", "mpirun", "penstock" (`--ranks`) or "environment".
  std::string launcher;
  std::string master;  ///< the host on which the ranks find each other
  std::uint16_t port = 0;
  /// The launcher serves the store on `master`; otherwise rank 0 does.
  bool store_is_served = false;
  /// Begins the names in the store: a store that outlives a start of the ranks
  /// must not give them what an earlier start left.
  std::string attempt;
};

/// The value of an environment variable, or null.
using Variables = std::function<const char*(const char* name)>;

/// Reads the environment of this process. nullopt: it describes one process.
///
///   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE: torchrun, `--ranks`
///   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE: mpirun
///   SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID: srun
///
/// MASTER_ADDR and MASTER_PORT come first everywhere. Without them all ranks of
/// one machine meet on 127.0.0.1, those of srun on the first node of the step;
/// the port follows from the number of the job.
///
/// Throws Error(request), code "ranks.environment", for a world without a rank,
/// a rank that is not below its world, a text that is not a number, and ranks
/// of several machines that do not say where they meet.
std::optional<RankPlace> rank_place(const Variables& variables);
std::optional<RankPlace> rank_place();  ///< of this process

/// What the environment says of the ranks of a process whose rank its caller
/// knows, or of a plan: as far as it can be read, and nothing is refused.
struct RanksAround {
  std::optional<int> world;  ///< WORLD_SIZE
  /// Processes of this machine: by LOCAL_WORLD_SIZE (torchrun), else what Open
  /// MPI, Intel MPI or Slurm say, of which the last may have started one that
  /// starts the others.
  std::optional<int> here;
};
RanksAround ranks_around(const Variables& variables);
RanksAround ranks_around();  ///< of this process

/// Set for the processes that `--ranks` starts: the number of the process that
/// has started them.
inline constexpr const char* kStartedBy = "PENSTOCK_RANKS_STARTED_BY";

/// The first host of a list as Slurm writes it: "gpu[03-05,9],login" ->
/// "gpu03".
std::string first_host(const std::string& list);

}  // namespace penstock
