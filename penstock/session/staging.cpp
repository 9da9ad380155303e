#include "penstock/session/staging.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/base/cache_folder.h"
#include "penstock/base/file_lock.h"
#include "penstock/base/json_path.h"
#include "penstock/cache/cache.h"
#include "penstock/exec/exec.h"
#include "penstock/session/copied_file.h"
#include "penstock/session/copied_list.h"
#include "penstock/session/drive.h"
#include "penstock/session/machine_profile.h"

// Files are copied to a folder of their own, named after what they are, and
// read there. Processes that want the same files meet at a lock beside the
// folder: one copies, the others wait and find the copies. A copy counts once
// it is in the list in the folder (CopiedList), with the version of its
// original and its own size, time and hash, so a run that is killed leaves
// nothing that a later one would take for whole.
//
// A few threads take the next file each; `writing` guards the list, all else is
// atomic. The first that fails sets `failed`, and the others end after their
// file. Notes are given by the calling thread alone.

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// Files are small and drives far: several at once.
constexpr int kThreads = 4;
constexpr double kInMemory = 0.95;  // of the bytes of the originals
constexpr Nanoseconds kNextLine = std::chrono::seconds(10);

constexpr const char* kNotCopied =
    "source.stage: the files are not copied, since they are already in memory "
    "(page cache or RAM disk)";

[[noreturn]] void refuse(const fs::path& folder, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = "source.stage",
                                   .what = "cannot copy the source's files",
                                   .where = folder.string(),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

std::string shown(std::int64_t bytes) {
  return shown_bytes(static_cast<std::size_t>(bytes));
}

std::string shown_rate(std::optional<double> bytes_per_s) {
  return bytes_per_s
             ? shown_bytes(static_cast<std::size_t>(*bytes_per_s)) + "/s"
             : "not measured";
}

std::string shown_time(double s) {
  return s < 120 ? std::to_string(std::llround(std::max(1.0, s))) + " s"
                 : std::to_string(std::llround(s / 60)) + " min";
}

/// What is to be done for one source.
struct CopyPlan {
  fs::path copies, folder;  // of all copies, of this one
  std::vector<StagedFile> files;
  std::vector<StagedFile> missing;  // not copied, or changed since then
  std::int64_t bytes = 0;           // of `missing`
  bool to_memory = false;

  explicit CopyPlan(const SourceSpec& spec)
      : copies(folder_of_copies(spec.stage)),
        folder(copies / staged_name(spec)),
        files(staged_files(spec)),
        to_memory(drive_of(copies, read_mounts()).in_memory()) {
    look();
  }

  void look() {
    const CopiedList list(folder);
    missing.clear();
    bytes = 0;
    for (const StagedFile& file : files)
      if (!list.holds(file)) {
        missing.push_back(file);
        bytes += file.bytes;
      }
  }

  std::vector<fs::path> originals() const {
    std::vector<fs::path> paths;
    for (const StagedFile& file : missing) paths.push_back(file.from);
    return paths;
  }

  /// What may still be written there.
  std::optional<std::size_t> room() const {
    std::optional<std::size_t> free = free_bytes(copies);
    if (!to_memory) return free;
    const std::optional<std::size_t> memory = read_host_limits().memory_free;
    if (!free || !memory) return memory ? memory : free;
    return std::min(*free, *memory);
  }
};

void check_room(const CopyPlan& plan) {
  const std::optional<std::size_t> room = plan.room();
  if (!room || static_cast<std::size_t>(plan.bytes) <= *room) return;
  throw Error(ErrorKind::request,
              {.code = "source.stage_room",
               .what = "cannot copy the source's files",
               .where = plan.folder.string(),
               .why = shown(plan.bytes) + " must be copied, but only " +
                      shown_bytes(*room) + " are free" +
                      (plan.to_memory ? " in memory" : ""),
               .next = "name a folder on another drive as source.stage, free "
                       "some space ('penstock cache prune --stage' removes "
                       "copies), or leave source.stage out"});
}

std::string shown_drive(const Drive& drive) {
  return drive.in_memory()
             ? "memory"
             : drive.type +
                   (drive.device.empty() ? "" : " (" + drive.device + ")");
}

/// How fast the copies are read, by what was measured of this machine; none
/// where that was not, or of another drive.
std::optional<double> rate_of_copies(const Drive& to,
                                     const std::string& mounts) {
  const fs::path cache = cache_folder();
  const Json profile = kept_profile(cache);
  if (to.in_memory()) return number_in(profile, {"memory_bytes_s"});
  if (drive_of(cache, mounts).mount != to.mount) return std::nullopt;
  return number_in(profile, {"drive", "read_bytes_s"});
}

std::string gain_of(std::optional<double> after, double now) {
  if (!after) return " ('penstock doctor' measures the speed)";
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", *after / now);
  return " at up to " + shown_rate(after) + ", predicted " + text +
         " times as fast";
}

std::string line_of(const CopyPlan& plan) {
  const std::string mounts = read_mounts();
  const Drive from = drive_of(plan.files.at(0).from, mounts);
  const Drive to = drive_of(plan.copies, mounts);
  const std::optional<double> rate = read_rate(plan.originals());
  const std::optional<std::size_t> room = plan.room();
  std::string line =
      "source.stage: " + std::to_string(plan.missing.size()) + " of " +
      std::to_string(plan.files.size()) + " files, " + shown(plan.bytes) +
      ", will be copied from " + shown_drive(from) + " to " +
      plan.folder.string() + " on " + shown_drive(to) +
      (room ? ", where " + shown_bytes(*room) + " are free" : "");
  if (!rate) return line + "; their read rate was not measured";
  const double s = static_cast<double>(plan.bytes) / *rate;
  line += "; read at " + shown_rate(rate) + ", which takes " + shown_time(s);
  if (to.in_memory())
    return line + "; epochs then read the files from memory" +
           gain_of(rate_of_copies(to, mounts), *rate);
  if (from.mount == to.mount)
    return line +
           "; both folders are on the same drive, so copying gains nothing";
  return line + "; epochs then read the files from that drive" +
         gain_of(rate_of_copies(to, mounts), *rate);
}

/// One process makes a copy, and the others wait for it.
void wait_for_turn(FileLock& turn, const CopyPlan& plan,
                   const std::function<void(const std::string&)>& note,
                   StopFlag stop) {
  fs::path lock = plan.folder;
  lock += ".lock";
  turn.take(lock, [&](int times) {
    if (times == 0 && note)
      note("another process is copying these files: waiting for " +
           plan.folder.string());
    end_if_stopped(stop);
  });
}

/// A folder for copies of this user alone, where others may write beside it.
void make_folder_of_copies(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) real_files().make_folders(folder);
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))
    refuse(folder, "the path is not a folder", "name a folder as source.stage");
  if (found.st_uid != ::geteuid() && found.st_uid != 0)
    refuse(folder,
           "the folder belongs to user " + std::to_string(found.st_uid) +
               ", who could change the files",
           "name your own folder as source.stage");
}

void copy_missing(const CopyPlan& plan,
                  const std::function<void(const std::string&)>& note,
                  StopFlag stop) {
  const std::thread::id caller = std::this_thread::get_id();
  const Nanoseconds begun = wall_clock().now();
  Nanoseconds next_line = begun + kNextLine;  // the caller's alone
  CopiedList list(plan.folder);
  std::mutex writing;
  std::atomic<std::size_t> next{0};
  std::atomic<std::int64_t> copied{0};
  std::atomic<bool> failed{false};
  auto seen = [&](std::int64_t bytes) {
    copied += bytes;
    end_if_stopped(stop);
    if (std::this_thread::get_id() != caller || !note) return;
    const Nanoseconds now = wall_clock().now();
    if (now < next_line) return;
    next_line = now + kNextLine;
    const double s = seconds(now - begun);
    const auto done = static_cast<double>(copied.load());
    const double left = static_cast<double>(plan.bytes) - done;
    note("copying files: " + shown(copied) + " of " + shown(plan.bytes) + ", " +
         shown_rate(done / s) + ", about " + shown_time(left / (done / s)) +
         " left");
  };
  in_ranges(kThreads, kThreads, [&](std::int64_t, std::int64_t) {
    try {
      while (!failed) {
        const std::size_t at = next++;
        if (at >= plan.missing.size()) return;
        const StagedFile& file = plan.missing[at];
        const std::uint64_t hash =
            copy_file(file, plan.folder / file.to, plan.to_memory, seen);
        const std::lock_guard lock(writing);
        list.add(file, hash);
      }
    } catch (...) {
      failed = true;
      throw;
    }
  });
  if (!note) return;
  const double s = seconds(wall_clock().now() - begun);
  note("copied " + std::to_string(plan.missing.size()) + " files, " +
       shown(plan.bytes) + ", in " + shown_time(s) + " to " +
       plan.folder.string());
}

bool in_memory_already(const CopyPlan& plan) {
  return drive_of(plan.files.at(0).from, read_mounts()).in_memory() ||
         share_in_page_cache(plan.originals()) >= kInMemory;
}

}  // namespace

fs::path folder_of_copies(const std::string& stage) {
  if (stage == "disk") return cache_folder() / "stage";
  if (stage != "ram") return fs::absolute(stage);
  const fs::path memory = "/dev/shm";
  if (!drive_of(memory, read_mounts()).in_memory())
    refuse(memory, "this machine has no RAM disk",
           "name a folder as source.stage, or write \"disk\"");
  return memory / ("penstock-" + std::to_string(::geteuid()));
}

std::string staging_text(const SourceSpec& spec) {
  std::string text;
  for (const SourceSpec& source : spec.sources) text += staging_text(source);
  if (spec.stage.empty()) return text;
  const CopyPlan plan(spec);
  if (plan.missing.empty())
    return "source.stage: all " + std::to_string(plan.files.size()) +
           " files are in " + plan.folder.string() + "\n";
  if (in_memory_already(plan)) return std::string(kNotCopied) + "\n";
  const std::optional<std::size_t> room = plan.room();
  const bool fits = !room || static_cast<std::size_t>(plan.bytes) <= *room;
  return line_of(plan) + (fits ? "\n" : "; the files do not fit\n");
}

std::string not_copied_text(const SourceSpec& spec,
                            const std::vector<Field>& fields) {
  const bool any = !spec.stage.empty() ||
                   std::ranges::any_of(spec.sources, [](const auto& one) {
                     return !one.stage.empty();
                   });
  if (!any) return {};
  std::string text;
  for (const Field& field : fields) {
    const std::optional<FolderFacts>& folder = field.kind->facts().folder;
    if (!folder) continue;
    text += "source.stage: the files in '" + folder->path + "', which '" +
            folder->setting +
            "' names, are not copied but read in place: copy that folder "
            "yourself and name the copy, or make the folder the source, whose "
            "files are copied (\"kind\": \"" +
            folder->source_kind + "\", with \"labels\")\n";
  }
  return text;
}

SourceSpec staged(SourceSpec spec,
                  const std::function<void(const std::string& line)>& note,
                  StopFlag stop, WhatIsInMemory in_memory) {
  for (SourceSpec& source : spec.sources)
    source = staged(std::move(source), note, stop, in_memory);
  if (spec.stage.empty()) return spec;
  CopyPlan plan(spec);
  spec.staged_version = version_of(plan.files);
  if (!plan.missing.empty()) {
    if (in_memory == WhatIsInMemory::stays && in_memory_already(plan)) {
      if (note) note(kNotCopied);
      return spec;
    }
    make_folder_of_copies(plan.copies);
    FileLock turn;
    wait_for_turn(turn, plan, note, stop);
    plan.look();  // another process may have copied them
    if (!plan.missing.empty()) {
      check_room(plan);
      if (note) note(line_of(plan));
      CopiedList::begin(plan.folder, spec, plan.files);
      copy_missing(plan, note, stop);
    }
  }
  CopiedList::used_now(plan.folder);
  spec.staged_in = plan.folder.string();
  return spec;
}

}  // namespace penstock
