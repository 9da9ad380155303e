#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What this program runs in, as far as the system tells.
struct SystemFacts {
  std::string os;  ///< "Debian GNU/Linux 12 (bookworm)"; empty: unknown
  std::string
      container;  ///< "docker", "podman", "kubernetes", ...; empty: none
  std::optional<std::string> docker;          ///< the path of its program
  std::optional<std::string> gpu_containers;  ///< of nvidia-container-toolkit
  std::string gpu_driver;                     ///< "580.65.06"; empty: none
  std::optional<std::size_t> open_files;      ///< at most, of this process
  std::optional<std::size_t> locked_bytes;    ///< at most; none: no limit
  std::optional<std::size_t> shared_bytes;    ///< of /dev/shm in all
};

/// `root` is "/" except in tests, which hand in a made-up tree; `path` is the
/// list of folders in which programs are looked for.
SystemFacts read_system(const std::filesystem::path& root = "/",
                        const std::string& path = "");

/// Of the drive that holds a folder, or where it would be made.
struct DriveFacts {
  std::string file_system;  ///< "ext4", "overlay", "tmpfs", "nfs4", ...
  /// "nvme", "ssd", "spinning", "virtual", "network", "memory", ""
  std::string kind;
  std::string device;  ///< "nvme0n1"; empty: unknown
  std::optional<std::size_t> free_bytes;
};
DriveFacts read_drive(const std::filesystem::path& folder,
                      const std::filesystem::path& root = "/");

/// `DriveFacts::kind` of a drive ("vda") with a file system of such a type.
std::string drive_kind(const std::string& type, const std::string& drive,
                       const std::filesystem::path& root = "/");

/// The least driver of NVIDIA that serves programs of this CUDA (1000 major +
/// 10 minor, as its runtime counts) on a card of this compute capability: the
/// later of the two. From the release notes of CUDA, table "CUDA Toolkit and
/// Minimum Required Driver Version for CUDA Minor Version Compatibility", and
/// from the first CUDA that has code for the card.
std::string least_driver(int cuda, int capability_major, int capability_minor);
/// "525.60.13" < "580.65.06"; by the numbers between the dots.
bool is_older_driver(const std::string& driver, const std::string& than);

Json json_of(const SystemFacts& system);
Json json_of(const DriveFacts& drive);

}  // namespace penstock
