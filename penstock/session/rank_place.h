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
  int local_rank = 0;    ///< among the processes of this machine
  int local_world = 1;   ///< processes of this machine
  std::string launcher;  ///< "torchrun", "srun", "mpirun" or "environment"
  std::string master;    ///< the host on which the ranks find each other
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
///   launcher   rank, world                          machine
///   torchrun   RANK, WORLD_SIZE                     LOCAL_RANK,
///   LOCAL_WORLD_SIZE mpirun     OMPI_COMM_WORLD_RANK, _SIZE
///   OMPI_COMM_WORLD_LOCAL_* srun       SLURM_PROCID, SLURM_STEP_NUM_TASKS
///   SLURM_LOCALID
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

/// The first host of a list as Slurm writes it: "gpu[03-05,9],login" ->
/// "gpu03".
std::string first_host(const std::string& list);

}  // namespace penstock
