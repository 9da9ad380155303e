#include "penstock/run/folder.h"

#include <unistd.h>

#include <chrono>

namespace penstock {

RunFolder::RunFolder(FileSystem& files, const std::filesystem::path& dir,
                     const Json& run)
    : files_(files) {
  auto now = std::chrono::system_clock::now();
  std::string time;
  for (char c : utc_text(now))
    if (c != '-' && c != ':' && c != '.') time += c;
  std::uint64_t unique =
      mix64(static_cast<std::uint64_t>(now.time_since_epoch().count()) ^
            (static_cast<std::uint64_t>(::getpid()) << 40));
  std::string hex;
  for (int i = 0; i < 6; ++i)
    hex += "0123456789abcdef"[(unique >> (4 * i)) & 15];
  path_ = dir / (time + "-" + hex);
  files_.make_folders(path_);
  write("run.json", run);
  files_.link_to(path_.filename(), dir / "latest");
}

void RunFolder::write(const std::string& name, const Json& document) {
  files_.write_atomic(path_ / name, document.dump(2) + "\n");
}

void RunFolder::append(const std::string& name, const std::string& lines) {
  if (!lines.empty()) files_.append_line(path_ / name, lines);
}

}  // namespace penstock
