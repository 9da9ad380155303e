#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/monitor/nvml.h"

namespace penstock {

/// What a machine's counters say at one moment. Counters only grow; what the
/// system does not report is missing.
struct MachineCounters {
  std::optional<double> cpu_busy_s;   ///< over all processors
  std::optional<double> cpu_total_s;  ///< busy, idle and waiting
  std::optional<double> memory_used;  ///< bytes that cannot be had without swap
  std::optional<double> memory_total;
  std::optional<double> disk_read, disk_written;     ///< bytes, whole drives
  std::optional<double> disk_busy_s;                 ///< of the busiest drive
  std::optional<double> net_received, net_sent;      ///< bytes, but not of lo
  std::optional<double> throttled_s;                 ///< by the cgroup's quota
  std::optional<double> cpu_pressure, io_pressure,   ///< share of the last 10 s
      memory_pressure;                               ///< in which some waited
  std::map<std::string, double> disk_busy_by_drive;  ///< seconds
};
/// `root` is "/" except in tests, which hand in a made-up tree.
MachineCounters read_machine(const std::filesystem::path& root = "/");

/// What a process, with all its threads, has used.
struct ProcessCounters {
  std::string name;
  double cpu_s = 0;
  double resident = 0;                  ///< bytes
  std::optional<double> read, written;  ///< bytes, from and to drives
  std::optional<double> asked_for;      ///< bytes of its reads, cached or not
  struct Thread {
    std::string name;
    double cpu_s = 0;
    char state = '?';  ///< of the kernel: R runs, S sleeps, D waits for a drive
  };
  std::map<pid_t, Thread> threads;
};
/// nullopt where there is no such process, it has ended and its parent does not
/// know yet, or it may not be looked at.
std::optional<ProcessCounters> read_process(
    pid_t process, const std::filesystem::path& root = "/");

/// The processes below one: its children, theirs, and so on.
std::vector<pid_t> processes_below(pid_t process,
                                   const std::filesystem::path& root = "/");

/// The GPUs of a machine, in the driver's order: their places on the bus. Empty
/// without a driver.
std::vector<std::string> gpus_of(const NvmlCalls& calls);

/// A driver with one GPU that is not there, for machines without one: numbers
/// that rise and fall with time. Reports call it "synthetic".
const NvmlCalls& synthetic_nvml();

}  // namespace penstock
