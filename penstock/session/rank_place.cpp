#include "penstock/session/rank_place.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock {
namespace {

// Below the ports that systems give out by themselves (32768 on Linux).
constexpr std::uint16_t kFirstPort = 15000;
constexpr std::uint64_t kPorts = 15000;

/// The variables that one launcher sets.
struct Launcher {
  const char *name, *rank, *world, *local_rank, *local_world;
};

// The first whose rank is there. mpirun may run inside of a step of Slurm, and
// a script may set RANK from either: what is closest to the program counts.
constexpr Launcher kLaunchers[] = {
    {"environment", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE"}};

[[noreturn]] void refuse_place(std::string where, std::string why,
                               std::string next) {
  throw Error(ErrorKind::request,
              {.code = "ranks.environment",
               .what = "cannot set up the ranks of this run",
               .where = std::move(where),
               .why = std::move(why),
               .next = std::move(next)});
}

/// The number at the beginning of a variable, which must end there or, for
/// Slurm's "2(x3)", with a bracket or a comma.
std::optional<int> number_in(const Variables& variables, const char* name) {
  const char* text = variables(name);
  if (text == nullptr) return std::nullopt;
  int number = 0;
  const char* end = text + std::strlen(text);
  const auto [at, wrong] = std::from_chars(text, end, number);
  const bool ends = at == end || *at == '(' || *at == ',';
  if (wrong != std::errc() || !ends || number < 0)
    refuse_place(
        name, "found '" + std::string(text) + "', expected a whole number",
        "unset the variable, or start the ranks with torchrun, srun or "
        "mpirun");
  return number;
}

const Launcher* launcher_of(const Variables& variables) {
  for (const Launcher& one : kLaunchers)
    if (variables(one.rank) != nullptr) return &one;
  return nullptr;
}

Rank rank_of(const Variables& variables, const Launcher& launcher) {
  const std::optional<int> own = number_in(variables, launcher.world);
  const std::optional<int> set = number_in(variables, "WORLD_SIZE");
  const std::optional<int> world = own ? own : set;
  const Rank rank{.rank = *number_in(variables, launcher.rank),
                  .world = world.value_or(1)};
  if (own && set && *own != *set)
    refuse_place(launcher.world,
                 std::string(launcher.world) + " is " + std::to_string(*own) +
                     ", but WORLD_SIZE is " + std::to_string(*set),
                 "unset WORLD_SIZE, or set it to the number of processes");
  if (rank.rank >= rank.world)
    refuse_place(launcher.rank,
                 "found rank " + std::to_string(rank.rank) + ", expected " +
                     (world ? "0 to " + std::to_string(*world - 1)
                            : "0, because " + std::string(launcher.world) +
                                  " is not set"),
                 "number N ranks from 0 to N - 1, or start the ranks with "
                 "torchrun, srun or mpirun");
  return rank;
}

/// FNV-1a: the same number on all ranks.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char one : text)
    hash = (hash ^ static_cast<unsigned char>(one)) * 0x100000001b3;
  return hash;
}

/// What only the processes of this start have in common; may be empty.
std::string name_of_start(const Variables& variables) {
  std::string name;
  for (const char* part :
       {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID",
        "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "PMIX_NAMESPACE",
        "OMPI_MCA_ess_base_jobid"})
    if (const char* text = variables(part))
      name += (name.empty() ? "" : ".") + std::string(text);
  return name;
}

std::string master_of(const Variables& variables, const Launcher& launcher,
                      const RankPlace& place) {
  if (const char* set = variables("MASTER_ADDR")) return set;
  if (const char* nodes = variables("SLURM_STEP_NODELIST"))
    return first_host(nodes);
  if (place.local_world == place.rank.world) return "127.0.0.1";
  refuse_place("MASTER_ADDR",
               "the variable is not set, and " + std::string(launcher.name) +
                   " has started " + std::to_string(place.rank.world) +
                   " ranks, of which " + std::to_string(place.local_world) +
                   " run on this machine",
               "set MASTER_ADDR to the host of rank 0 on all ranks");
}

std::uint16_t port_of(const Variables& variables, const RankPlace& place) {
  if (const auto set = number_in(variables, "MASTER_PORT")) {
    if (*set < 1 || *set > 65535)
      refuse_place("MASTER_PORT", "found " + std::to_string(*set),
                   "set a port from 1 to 65535");
    return static_cast<std::uint16_t>(*set);
  }
  if (place.attempt.empty())
    refuse_place(
        "MASTER_PORT", "the variable is not set",
        "set MASTER_PORT to the same free port on all ranks, or start them "
        "with torchrun");
  return static_cast<std::uint16_t>(kFirstPort +
                                    hash_of(place.attempt) % kPorts);
}

}  // namespace

// A list of hosts, as `scontrol show hostnames` reads it: names with commas
// between them, each with a list of numbers and ranges in brackets.
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == list.npos || comma < bracket) return list.substr(0, comma);
  const std::size_t first_end = list.find_first_of("-,]", bracket);
  const std::size_t close = list.find(']', bracket);
  if (first_end == list.npos || close == list.npos)
    refuse_place(
        "SLURM_STEP_NODELIST",
        "found '" + list + "', expected a list of hosts such as node[1-4]",
        "set MASTER_ADDR to the host of rank 0 on all ranks");
  const std::size_t end = list.find(',', close);
  return list.substr(0, bracket) +
         list.substr(bracket + 1, first_end - bracket - 1) +
         (end == list.npos ? list.substr(close + 1)
                           : list.substr(close + 1, end - close - 1));
}

std::optional<RankPlace> rank_place(const Variables& variables) {
  const Launcher* launcher = launcher_of(variables);
  if (launcher == nullptr) {
    const std::optional<int> world = number_in(variables, "WORLD_SIZE");
    if (world.value_or(1) <= 1) return std::nullopt;
    refuse_place(
        "WORLD_SIZE",
        "found " + std::to_string(*world) + " ranks, but RANK is not set",
        "set RANK, from 0 to " + std::to_string(*world - 1) +
            ", or start the ranks with torchrun");
  }
  RankPlace place{.rank = rank_of(variables, *launcher),
                  .launcher = launcher->name};
  if (place.rank.world == 1) return std::nullopt;
  if (variables("TORCHELASTIC_RUN_ID") != nullptr) place.launcher = "torchrun";
  if (variables(kStartedBy) != nullptr) place.launcher = "penstock";
  const std::optional<int> local = number_in(variables, launcher->local_rank);
  place.local_rank = local.value_or(0);
  place.local_world =
      number_in(variables, launcher->local_world)
          .value_or(local ? place.local_rank + 1 : place.rank.world);
  if (!local && place.local_world == place.rank.world)
    place.local_rank = place.rank.rank;
  place.attempt = name_of_start(variables);
  place.master = master_of(variables, *launcher, place);
  place.port = port_of(variables, place);
  const char* served = variables("TORCHELASTIC_USE_AGENT_STORE");
  place.store_is_served = served != nullptr && std::strcmp(served, "True") == 0;
  return place;
}

RanksAround ranks_around(const Variables& variables) {
  auto number = [&](const char* name) -> std::optional<int> {
    const char* text = variables(name);
    if (text == nullptr) return std::nullopt;
    int found = 0;
    const char* end = text + std::strlen(text);
    const auto [at, wrong] = std::from_chars(text, end, found);
    if (wrong != std::errc() || at != end || found < 1) return std::nullopt;
    return found;
  };
  RanksAround around{.world = number("WORLD_SIZE"), .here = {}};
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (!around.here) around.here = number(name);
  return around;
}

namespace {

const char* of_this_process(const char* name) { return std::getenv(name); }

}  // namespace

std::optional<RankPlace> rank_place() { return rank_place(of_this_process); }
RanksAround ranks_around() { return ranks_around(of_this_process); }

}  // namespace penstock
