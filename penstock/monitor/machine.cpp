#include "penstock/monitor/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "penstock/base/folder.h"
#include "penstock/base/kernel_files.h"
#include "penstock/monitor/host.h"

namespace penstock {
namespace {

constexpr double kSector = 512;  // bytes, whatever the drive has

double ticks_in_seconds(double ticks) {
  static const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks / per_second;
}

/// "cpu  user nice system idle iowait irq softirq steal guest guest_nice":
/// guests are in user and nice already.
void read_cpu(const std::filesystem::path& root, MachineCounters& to) {
  std::ifstream file(root / "proc/stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return;
  double all = 0, idle = 0;
  for (int i = 0; i < 8; ++i) {
    double ticks = 0;
    if (!(file >> ticks)) return;
    all += ticks;
    if (i == 3 || i == 4) idle += ticks;
  }
  to.cpu_total_s = ticks_in_seconds(all);
  to.cpu_busy_s = ticks_in_seconds(all - idle);
}

void read_memory(const std::filesystem::path& root, MachineCounters& to) {
  const std::filesystem::path info = root / "proc/meminfo";
  auto total = number_in(info, "MemTotal:");
  auto available = number_in(info, "MemAvailable:");
  if (!total || !available) return;
  to.memory_total = 1024 * static_cast<double>(*total);
  to.memory_used = 1024 * static_cast<double>(*total - *available);
}

/// A whole drive, not one of its partitions, a loop or memory.
bool is_drive(const std::filesystem::path& root, const std::string& name) {
  std::error_code none;
  return std::filesystem::exists(root / "sys/block" / name, none) &&
         !name.starts_with("loop") && !name.starts_with("ram") &&
         !name.starts_with("zram") && !name.starts_with("dm-");
}

// A line of /proc/diskstats (iostats in the kernel's admin guide) has, after
// the name: reads, merged, sectors read, ms, writes, merged, sectors written,
// ms, requests under way, and the ms in which there were any.
void read_drives(const std::filesystem::path& root, MachineCounters& to) {
  std::ifstream file(root / "proc/diskstats");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    int major = 0, minor = 0;
    std::string name;
    double numbers[10] = {};  // from "reads completed" on
    words >> major >> minor >> name;
    for (double& number : numbers) words >> number;
    if (!words || !is_drive(root, name)) continue;
    to.disk_read = to.disk_read.value_or(0) + kSector * numbers[2];
    to.disk_written = to.disk_written.value_or(0) + kSector * numbers[6];
    to.disk_busy_by_drive[name] = 1e-3 * numbers[9];
  }
  for (const auto& [name, busy_s] : to.disk_busy_by_drive)
    to.disk_busy_s = std::max(to.disk_busy_s.value_or(0), busy_s);
}

// Eight numbers of what was received, bytes first, then as many of what was
// sent.
void read_network(const std::filesystem::path& root, MachineCounters& to) {
  std::ifstream file(root / "proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    std::string name = line.substr(0, colon);
    name.erase(0, name.find_first_not_of(' '));
    if (name == "lo") continue;
    std::istringstream words(line.substr(colon + 1));
    double numbers[9] = {};
    for (double& number : numbers) words >> number;
    if (!words) continue;
    to.net_received = to.net_received.value_or(0) + numbers[0];
    to.net_sent = to.net_sent.value_or(0) + numbers[8];
  }
}

/// "some avg10=1.23 avg60=...": of the last ten seconds, the share in which
/// somebody waited.
std::optional<double> pressure(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string some, average;
  if (!(stream >> some >> average) || some != "some" ||
      !average.starts_with("avg10="))
    return std::nullopt;
  return std::strtod(average.c_str() + 6, nullptr) / 100;
}

/// The numbers of /proc/PID/stat after the name, which may hold anything.
std::vector<std::string> words_of_stat(const std::filesystem::path& file,
                                       std::string& name) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return {};
  const std::size_t open = line.find('('), close = line.rfind(')');
  if (open == line.npos || close == line.npos) return {};
  name = line.substr(open + 1, close - open - 1);
  std::istringstream rest(line.substr(close + 1));
  std::vector<std::string> words;
  for (std::string word; rest >> word;) words.push_back(std::move(word));
  return words;
}

double number_of(const std::string& word) {
  return std::strtod(word.c_str(), nullptr);
}

}  // namespace

MachineCounters read_machine(const std::filesystem::path& root) {
  MachineCounters counters;
  read_cpu(root, counters);
  read_memory(root, counters);
  read_drives(root, counters);
  read_network(root, counters);
  if (auto throttled = read_host_use(root).throttled_us)
    counters.throttled_s = 1e-6 * static_cast<double>(*throttled);
  counters.cpu_pressure = pressure(root / "proc/pressure/cpu");
  counters.io_pressure = pressure(root / "proc/pressure/io");
  counters.memory_pressure = pressure(root / "proc/pressure/memory");
  return counters;
}

// From the state on, which is field 3 of proc_pid_stat(5): words 11 and 12 are
// the ticks in user and kernel mode, 21 the resident pages.
std::optional<ProcessCounters> read_process(pid_t process,
                                            const std::filesystem::path& root) {
  const std::filesystem::path folder = root / "proc" / std::to_string(process);
  ProcessCounters counters;
  const auto words = words_of_stat(folder / "stat", counters.name);
  const bool ended = !words.empty() && (words[0] == "Z" || words[0] == "X");
  if (words.size() < 22 || ended) return std::nullopt;
  counters.cpu_s =
      ticks_in_seconds(number_of(words[11]) + number_of(words[12]));
  counters.resident =
      number_of(words[21]) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  auto in_io = [&](const char* key) -> std::optional<double> {
    auto number = number_in(folder / "io", key);
    if (!number) return std::nullopt;
    return static_cast<double>(*number);
  };
  counters.read = in_io("read_bytes:");
  counters.written = in_io("write_bytes:");
  counters.asked_for = in_io("rchar:");
  std::error_code none;
  for (const FolderEntry& entry : entries_of(folder / "task", none)) {
    ProcessCounters::Thread thread;
    const auto of = words_of_stat(entry.path / "stat", thread.name);
    if (of.size() < 13) continue;  // it has just ended
    thread.state = of[0].empty() ? '?' : of[0][0];
    thread.cpu_s = ticks_in_seconds(number_of(of[11]) + number_of(of[12]));
    counters.threads.emplace(
        static_cast<pid_t>(number_of(entry.path.filename().string())),
        std::move(thread));
  }
  return counters;
}

namespace {

std::filesystem::path children_file(pid_t process, const std::string& thread,
                                    const std::filesystem::path& root) {
  return root / "proc" / std::to_string(process) / "task" / thread / "children";
}

/// Of each of its threads (CONFIG_PROC_CHILDREN), so that the other processes
/// of a machine, which may be thousands, are not looked at.
std::vector<pid_t> told_children(pid_t process,
                                 const std::filesystem::path& root) {
  std::vector<pid_t> children;
  std::error_code none;
  const auto threads = root / "proc" / std::to_string(process) / "task";
  for (const FolderEntry& entry : entries_of(threads, none)) {
    std::ifstream file(
        children_file(process, entry.path.filename().string(), root));
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

/// By the parents that all processes name.
std::multimap<pid_t, pid_t> all_children(const std::filesystem::path& root) {
  std::multimap<pid_t, pid_t> children;
  std::error_code none;
  for (const FolderEntry& entry : entries_of(root / "proc", none)) {
    const std::string number = entry.path.filename().string();
    if (number.find_first_not_of("0123456789") != number.npos) continue;
    std::string name;
    const auto words = words_of_stat(entry.path / "stat", name);
    if (words.size() > 1)
      children.emplace(static_cast<pid_t>(number_of(words[1])),
                       static_cast<pid_t>(number_of(number)));
  }
  return children;
}

}  // namespace

std::vector<pid_t> processes_below(pid_t process,
                                   const std::filesystem::path& root) {
  std::error_code none;
  const bool told = std::filesystem::exists(
      children_file(process, std::to_string(process), root), none);
  std::multimap<pid_t, pid_t> all;
  if (!told) all = all_children(root);
  std::vector<pid_t> below;
  std::set<pid_t> seen;  // a made-up tree could hold a circle
  pid_t of = process;
  for (std::size_t next = 0;; of = below[next++]) {
    std::vector<pid_t> children;
    if (told) children = told_children(of, root);
    for (auto [at, end] = all.equal_range(of); at != end; ++at)
      children.push_back(at->second);
    for (pid_t child : children)
      if (seen.insert(child).second) below.push_back(child);
    if (next == below.size()) return below;
  }
}

std::vector<std::string> gpus_of(const NvmlCalls& calls) {
  std::vector<std::string> buses;
  if (calls.init == nullptr || calls.shutdown == nullptr ||
      calls.count == nullptr || calls.by_index == nullptr ||
      calls.pci == nullptr || calls.init() != 0)
    return buses;
  unsigned count = 0;
  if (calls.count(&count) == 0)
    for (unsigned i = 0; i < count; ++i) {
      NvmlCalls::Device gpu = nullptr;
      NvmlCalls::Pci pci{};
      if (calls.by_index(i, &gpu) == 0 && calls.pci(gpu, &pci) == 0)
        buses.emplace_back(pci.bus_id);
    }
  calls.shutdown();
  return buses;
}

}  // namespace penstock
