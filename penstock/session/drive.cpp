#include "penstock/session/drive.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "penstock/base/base.h"

namespace penstock {
namespace {

/// A mount point as the kernel writes it: spaces and the like as \040.
std::string unescaped(const std::string& text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      made += text[i];
      continue;
    }
    made += static_cast<char>((text[i + 1] - '0') * 64 +
                              (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return made;
}

bool is_below(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder ||
         (path.starts_with(folder) && path[folder.size()] == '/');
}

/// A file without what the system keeps of it in memory, while this lives.
class UncachedFile {
 public:
  explicit UncachedFile(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOATIME)) {
    if (!file_) file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file_) ::posix_fadvise(file_.number(), 0, 0, POSIX_FADV_DONTNEED);
  }

  std::size_t read(std::vector<char>& to) {
    const ssize_t count =
        file_ ? ::read(file_.number(), to.data(), to.size()) : -1;
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

 private:
  Descriptor file_;
};

}  // namespace

Json Drive::json() const {
  Json json;
  json["mount"] = mount;
  json["device"] = device;
  json["type"] = type;
  json["bytes_per_s"] = bytes_per_s ? Json(*bytes_per_s) : Json();
  return json;
}

// "36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/sda1 rw": the fifth is
// where, and after the dash stand type and device. Later mounts hide earlier
// ones. proc(5), /proc/PID/mountinfo.
Drive drive_of(const std::filesystem::path& path, const std::string& mounts) {
  std::error_code unknown;
  const std::string real =
      std::filesystem::weakly_canonical(path, unknown).string();
  Drive found;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, mount;
    for (int i = 0; i < 5; ++i) words >> mount;
    while (words >> word && word != "-") {
    }
    mount = unescaped(mount);
    if (mount.size() < found.mount.size() || !is_below(real, mount)) continue;
    found.mount = mount;
    words >> found.type >> found.device;
  }
  return found;
}

std::string read_mounts() {
  std::ifstream file("/proc/self/mountinfo");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<double> read_rate(
    const std::vector<std::filesystem::path>& files) {
  constexpr std::size_t kMost = std::size_t{256} << 20;
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  constexpr double kSeconds = 0.5;
  std::vector<char> piece(std::size_t{4} << 20);
  std::size_t read = 0;
  const Nanoseconds begun = wall_clock().now();
  auto taken = [&] { return seconds(wall_clock().now() - begun); };
  for (const std::filesystem::path& path : files) {
    UncachedFile file(path);
    std::size_t count = 0;
    do {
      if (read >= kMost || taken() >= kSeconds) break;
      count = file.read(piece);
      read += count;
    } while (count > 0);
  }
  if (read < kLeast) return std::nullopt;
  return static_cast<double>(read) / taken();
}

}  // namespace penstock
