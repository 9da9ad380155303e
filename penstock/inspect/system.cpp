#include "penstock/inspect/system.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "penstock/base/file.h"

namespace penstock {
namespace {

using std::filesystem::path;

std::string first_line(const path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// PRETTY_NAME of os-release(5), whose values may be quoted.
std::string name_of_os(const path& root) {
  for (const char* file : {"etc/os-release", "usr/lib/os-release"}) {
    std::ifstream stream(root / file);
    for (std::string line; std::getline(stream, line);) {
      if (!line.starts_with("PRETTY_NAME=")) continue;
      std::string name = line.substr(12);
      std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
      return name;
    }
  }
  return "";
}

/// By the files and words that each leaves: none of them is a standard.
std::string container_of(const path& root) {
  std::error_code none;
  if (std::filesystem::exists(root / "run/.containerenv", none))
    return "podman";
  if (std::filesystem::exists(
          root / "var/run/secrets/kubernetes.io/serviceaccount", none))
    return "kubernetes";
  if (std::filesystem::exists(root / ".dockerenv", none)) return "docker";
  if (std::filesystem::exists(root / ".singularity.d", none))
    return "apptainer";
  const std::string groups = first_line(root / "proc/1/cgroup");
  for (const char* word : {"docker", "kubepods", "libpod", "lxc"})
    if (groups.find(word) != groups.npos) return word;
  return "";
}

std::optional<std::string> program(const std::string& name,
                                   const std::string& folders) {
  std::istringstream stream(folders);
  std::error_code none;
  for (std::string folder; std::getline(stream, folder, ':');)
    if (!folder.empty() && std::filesystem::exists(path(folder) / name, none))
      return (path(folder) / name).string();
  return std::nullopt;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ...".
std::string gpu_driver(const path& root) {
  std::istringstream words(first_line(root / "proc/driver/nvidia/version"));
  for (std::string word; words >> word;)
    if (word.find('.') != word.npos &&
        word.find_first_not_of("0123456789.") == word.npos)
      return word;
  return "";
}

std::optional<std::size_t> limit(int resource) {
  rlimit found{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &found) != 0 ||
      found.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<std::size_t>(found.rlim_cur);
}

std::vector<int> numbers_of(const std::string& version) {
  std::vector<int> numbers;
  std::istringstream stream(version);
  for (std::string part; std::getline(stream, part, '.');)
    numbers.push_back(std::atoi(part.c_str()));
  return numbers;
}

path existing(path folder) {
  std::error_code none;
  while (!folder.empty() && folder != folder.parent_path() &&
         !std::filesystem::exists(folder, none))
    folder = folder.parent_path();
  return folder.empty() ? path(".") : folder;
}

/// The line of proc/self/mountinfo for a device "MAJOR:MINOR": its file system
/// and what was mounted (proc(5)).
std::pair<std::string, std::string> mount_of(const std::string& device,
                                             const path& root) {
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, number;
    words >> id >> parent >> number;
    const std::size_t dash = line.find(" - ");
    if (number != device || dash == line.npos) continue;
    std::istringstream rest(line.substr(dash + 3));
    std::string type, source;
    rest >> type >> source;
    return {type, source};
  }
  return {};
}

}  // namespace

std::string drive_kind(const std::string& type, const std::string& drive,
                       const path& root) {
  if (type == "tmpfs" || type == "ramfs") return "memory";
  for (const char* network :
       {"nfs", "cifs", "smb", "fuse", "lustre", "9p", "ceph", "gluster"})
    if (type.starts_with(network)) return "network";
  if (drive.empty()) return "";
  if (drive.starts_with("nvme")) return "nvme";
  // Of a drive of the host's; what it says of itself is made up.
  if (drive.starts_with("vd") || drive.starts_with("xvd")) return "virtual";
  const std::string rotates =
      first_line(root / "sys/block" / drive / "queue/rotational");
  return rotates == "1" ? "spinning" : rotates == "0" ? "ssd" : "";
}

namespace {

/// "nvme0n1" of its partition "nvme0n1p2": the folder above in sysfs.
std::string drive_of(const std::string& device, const path& root) {
  std::error_code none;
  const path link =
      std::filesystem::read_symlink(root / "sys/dev/block" / device, none);
  if (none) return "";
  const std::string name = link.filename().string();
  const std::string above = link.parent_path().filename().string();
  return above == "block" ? name : above;
}

}  // namespace

SystemFacts read_system(const path& root, const std::string& folders) {
  std::string search = folders;
  if (const char* own = std::getenv("PATH"); folders.empty() && own != nullptr)
    search = own;
  SystemFacts facts{.os = name_of_os(root),
                    .container = container_of(root),
                    .docker = program("docker", search),
                    .gpu_containers = program("nvidia-ctk", search),
                    .gpu_driver = gpu_driver(root),
                    .open_files = limit(RLIMIT_NOFILE),
                    .locked_bytes = limit(RLIMIT_MEMLOCK),
                    .shared_bytes = {}};
  struct statvfs shared {};
  if (::statvfs((root / "dev/shm").c_str(), &shared) == 0)
    facts.shared_bytes = std::size_t{shared.f_frsize} * shared.f_blocks;
  return facts;
}

DriveFacts read_drive(const path& folder, const path& root) {
  DriveFacts facts;
  const path there = existing(folder);
  facts.free_bytes = free_bytes(there);
  struct stat status {};
  if (::stat(there.c_str(), &status) != 0) return facts;
  const std::string number = std::to_string(major(status.st_dev)) + ":" +
                             std::to_string(minor(status.st_dev));
  facts.file_system = mount_of(number, root).first;
  facts.device = drive_of(number, root);
  facts.kind = drive_kind(facts.file_system, facts.device, root);
  return facts;
}

std::string least_driver(int cuda, int capability_major, int capability_minor) {
  struct Line {
    int from;
    const char* driver;
  };
  // Of the toolkit's major version.
  static constexpr Line kByToolkit[] = {
      {13000, "580.65.06"}, {12000, "525.60.13"}, {11000, "450.80.02"}};
  // Of the first toolkit with code for the card: 12.8 for 10.0 and 12.0, 11.8
  // for 8.9 and 9.0, 11.1 for 8.6, 11.0 for 8.0.
  static constexpr Line kByCard[] = {
      {100, "570.26"}, {89, "520.61.05"}, {86, "455.23"}, {80, "450.36.06"}};
  std::string least;
  auto raise = [&](auto& lines, int number) {
    for (const Line& line : lines) {
      if (number < line.from) continue;
      if (least.empty() || is_older_driver(least, line.driver))
        least = line.driver;
      return;
    }
  };
  raise(kByToolkit, cuda);
  raise(kByCard, 10 * capability_major + capability_minor);
  return least;
}

bool is_older_driver(const std::string& driver, const std::string& than) {
  return numbers_of(driver) < numbers_of(than);
}

Json json_of(const SystemFacts& system) {
  auto known = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  auto there = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json json;
  json["os"] = known(system.os);
  json["container"] = known(system.container);
  json["docker"] = there(system.docker);
  json["nvidia_container_toolkit"] = there(system.gpu_containers);
  json["gpu_driver"] = known(system.gpu_driver);
  json["open_files"] = there(system.open_files);
  json["locked_bytes"] = there(system.locked_bytes);
  json["shared_bytes"] = there(system.shared_bytes);
  return json;
}

Json json_of(const DriveFacts& drive) {
  auto known = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  Json json;
  json["file_system"] = known(drive.file_system);
  json["kind"] = known(drive.kind);
  json["device"] = known(drive.device);
  json["free_bytes"] = drive.free_bytes ? Json(*drive.free_bytes) : Json();
  return json;
}

}  // namespace penstock
