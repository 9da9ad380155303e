#include "penstock/session/folder.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "penstock/base/folder.h"

namespace penstock {
namespace {

constexpr const char* kSetting = "'output.dir'";

bool is_on_disk(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

/// <UTC time>-<hex>: sorts by time, and two runs of one moment differ. The last
/// part mixes the clock's ticks with the process's number, so processes that
/// begin at one moment do not share a folder.
std::string new_name() {
  auto now = std::chrono::system_clock::now();
  std::string name;
  for (char c : utc_text(now))
    if (c != '-' && c != ':' && c != '.') name += c;
  std::uint64_t unique =
      mix64(static_cast<std::uint64_t>(now.time_since_epoch().count()) ^
            (static_cast<std::uint64_t>(::getpid()) << 40));
  name += '-';
  for (int i = 0; i < 6; ++i)
    name += "0123456789abcdef"[(unique >> (4 * i)) & 15];
  return name;
}

}  // namespace

template <class Work>
void OutputFolder::named(Work work) const {
  try {
    work();
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (parts.code == "file.write")
      parts.next += ", or choose another folder with " + setting_;
    throw Error(error.kind(), std::move(parts));
  }
}

OutputFolder::OutputFolder(FileSystem& files, std::filesystem::path path,
                           std::string setting)
    : files_(files), path_(std::move(path)), setting_(std::move(setting)) {
  named([&] { files_.make_folders(path_); });
}

void OutputFolder::write(const std::string& name, const std::string& bytes,
                         Lasting lasting) {
  named([&] { files_.write(path_ / name, bytes, lasting); });
}

void OutputFolder::write(const std::string& name,
                         const std::vector<std::span<const std::byte>>& pieces,
                         Lasting lasting) {
  named([&] {
    const std::unique_ptr<FileWriter> file = files_.create(path_ / name);
    for (const std::span<const std::byte>& piece : pieces) file->append(piece);
    file->commit(lasting);
  });
}

void OutputFolder::append(const std::string& name, const std::string& lines,
                          Readers readers) {
  named([&] { files_.append_line(path_ / name, lines, readers); });
}

void OutputFolder::remove(const std::string& name) {
  std::error_code failed;
  std::filesystem::remove(path_ / name, failed);
  if (failed)
    log(LogLevel::warning,
        "cannot remove " + (path_ / name).string() + ": " + failed.message());
}

void OutputFolder::keep_as(const std::string& name, const std::string& second) {
  const std::filesystem::path beside = path_ / (second + ".link");
  std::error_code failed;
  std::filesystem::remove(beside, failed);
  std::filesystem::create_hard_link(path_ / name, beside, failed);
  if (!failed)
    std::filesystem::rename(beside, path_ / second, failed);
  else
    std::filesystem::rename(path_ / name, path_ / second, failed);
  if (failed)
    log(LogLevel::warning,
        "cannot rename " + (path_ / name).string() + ": " + failed.message());
}

void OutputFolder::link(const std::string& name,
                        const std::filesystem::path& target) {
  named([&] { files_.link_to(target, path_ / name); });
}

// A folder exists for others once it has a run.json. One in which this cannot
// be written is removed again, together with a parent that was made for it.
RunFolder::RunFolder(FileSystem& files, const std::filesystem::path& dir,
                     const Json& run, const std::string& name)
    : files_(files),
      makes_parent_(!is_on_disk(dir)),
      folder_(files, dir / (name.empty() ? new_name() : name), kSetting) {
  try {
    write("run.json", run, Lasting::with_next);
  } catch (const Error&) {
    discard();
    throw;
  }
}

RunFolder::RunFolder(FileSystem& files, const std::filesystem::path& run,
                     int rank)
    : files_(files),
      of_rank_(true),
      makes_parent_(false),
      folder_(files, run / "ranks" / std::to_string(rank), kSetting) {}

OutputFolder RunFolder::inside(const std::string& name) {
  return OutputFolder(files_, path() / name, kSetting);
}

// The link is replaced by a rename, so a reader of "latest" finds the old run
// or the new one, and never nothing.
void RunFolder::become_latest() {
  if (of_rank_) return;
  OutputFolder(files_, path().parent_path(), kSetting)
      .link("latest", path().filename());
}

void RunFolder::check_latest() {
  if (of_rank_) return;
  std::error_code none;
  const auto found =
      std::filesystem::symlink_status(path().parent_path() / "latest", none);
  // The link is refused, which names what is there.
  if (std::filesystem::exists(found) && !std::filesystem::is_symlink(found))
    become_latest();
}

void RunFolder::discard() noexcept {
  remove_tree(path());  // the error that led here is the one to tell
  std::error_code none;
  if (makes_parent_)  // it stays where others have put something into it
    std::filesystem::remove(path().parent_path(), none);
}

void RunFolder::write(const std::string& name, const Json& document,
                      Lasting lasting) {
  folder_.write(name, document.dump(2) + "\n", lasting);
}

void RunFolder::append(const std::string& name, const std::string& lines,
                       Readers readers) {
  if (!lines.empty()) folder_.append(name, lines, readers);
}

}  // namespace penstock
