#include "penstock/session/machine_profile.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/base/temporary.h"
#include "penstock/exec/exec.h"
#include "penstock/monitor/monitor.h"

namespace penstock {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

/// Copies of 16 MiB, each way larger than the caches of a core, by so many
/// threads for a while; bytes per second in all.
double copying(int threads, double for_s) {
  constexpr std::size_t kBytes = 16 * kMiB;
  std::atomic<std::int64_t> copied{0};
  const Nanoseconds end = wall_clock().now() + from_seconds(for_s);
  const Nanoseconds began = wall_clock().now();
  in_ranges(threads, threads, [&](std::int64_t, std::int64_t) {
    std::vector<char> from(kBytes, 1), to(kBytes, 2);
    do {  // once on the slowest machine, too
      std::memcpy(to.data(), from.data(), kBytes);
      from[0] = static_cast<char>(to[kBytes - 1] + 1);  // it is used
      copied += static_cast<std::int64_t>(kBytes);
    } while (wall_clock().now() < end);
  });
  return static_cast<double>(copied) / seconds(wall_clock().now() - began);
}

/// Work that stays in a core's registers; pieces per second.
double computing(int threads, double for_s) {
  std::atomic<std::int64_t> pieces{0};
  const Nanoseconds end = wall_clock().now() + from_seconds(for_s);
  const Nanoseconds began = wall_clock().now();
  in_ranges(threads, threads, [&](std::int64_t thread, std::int64_t) {
    auto number = static_cast<std::uint64_t>(thread);
    std::int64_t own = 0;
    do {
      for (int i = 0; i < 20'000; ++i) number = mix64(number);
      ++own;
    } while (wall_clock().now() < end);
    pieces += number == 0 ? own - 1 : own;
  });
  return static_cast<double>(pieces) / seconds(wall_clock().now() - began);
}

/// A file of 64 MiB, written and read past the page cache where that can be.
/// O_DIRECT bypasses the page cache, and wants offsets, sizes and memory
/// aligned to the logical block (open(2)); 4 KiB fit all common drives. Where
/// the file system refuses it, POSIX_FADV_DONTNEED is the next best, and
/// "direct" is false.
class DriveTrial {
 public:
  explicit DriveTrial(const std::filesystem::path& folder)
      : file_(folder / "drive-trial") {}

  Json json() {
    Json json;
    json["direct"] = false;
    if (!file_.open() || !write()) {
      for (const char* key :
           {"write_bytes_s", "read_bytes_s", "read_latency_ms"})
        json[key] = Json();
      return json;
    }
    json["write_bytes_s"] = static_cast<double>(kBytes) / wrote_s_;
    json["direct"] = ::fcntl(file_.number(), F_SETFL,
                             ::fcntl(file_.number(), F_GETFL) | O_DIRECT) == 0;
    (void)::posix_fadvise(file_.number(), 0, 0, POSIX_FADV_DONTNEED);
    json["read_bytes_s"] = read_all();
    json["read_latency_ms"] = latency_ms();
    file_.forget_name();
    return json;
  }

 private:
  static constexpr std::size_t kBytes = 64 * kMiB, kPage = 4096;

  bool write() {
    const Nanoseconds began = wall_clock().now();
    for (std::size_t at = 0; at < kBytes; at += kPiece)
      if (::pwrite(file_.number(), memory_, kPiece, static_cast<off_t>(at)) !=
          static_cast<ssize_t>(kPiece))
        return false;
    if (::fsync(file_.number()) != 0) return false;
    wrote_s_ = seconds(wall_clock().now() - began);
    return true;
  }

  double read_all() {
    const Nanoseconds began = wall_clock().now();
    for (std::size_t at = 0; at < kBytes; at += kPiece)
      if (::pread(file_.number(), memory_, kPiece, static_cast<off_t>(at)) <= 0)
        return kNotMeasured;
    return static_cast<double>(kBytes) / seconds(wall_clock().now() - began);
  }

  /// The median of reads of a page here and there.
  double latency_ms() {
    std::vector<double> times;
    (void)::posix_fadvise(file_.number(), 0, 0, POSIX_FADV_DONTNEED);
    for (std::uint64_t i = 0; i < 64; ++i) {
      const std::uint64_t page = mix64(i) % (kBytes / kPage);
      const Nanoseconds began = wall_clock().now();
      if (::pread(file_.number(), memory_, kPage,
                  static_cast<off_t>(page * kPage)) <= 0)
        return kNotMeasured;
      times.push_back(1e3 * seconds(wall_clock().now() - began));
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  static constexpr std::size_t kPiece = 4 * kMiB;

  TemporaryFile file_;
  // O_DIRECT wants memory that begins at a page.
  std::vector<char> storage_ = std::vector<char>(kPiece + kPage);
  char* const memory_ =
      storage_.data() +
      (kPage - reinterpret_cast<std::uintptr_t>(storage_.data()) % kPage);
  double wrote_s_ = 0;
};

double copying_to(Device& device) {
  constexpr std::size_t kBytes = 64 * kMiB;
  auto stream = device.make_stream();
  Buffer from = device.allocate_pinned(kBytes), to = device.allocate(kBytes);
  stream->copy(to.data(), from.data(), kBytes);
  stream->synchronize();
  const Nanoseconds began = wall_clock().now();
  constexpr int kTimes = 8;
  for (int i = 0; i < kTimes; ++i) stream->copy(to.data(), from.data(), kBytes);
  stream->synchronize();
  return kTimes * static_cast<double>(kBytes) /
         seconds(wall_clock().now() - began);
}

/// What must be the same for numbers to be used again.
Json identity_of(Device* device) {
  const Json machine = machine_json();
  Json json;
  for (const char* key : {"processor", "cpus", "kernel"})
    if (const Json* value = machine.find(key)) json[key] = *value;
  json["device"] = device == nullptr ? Json() : Json(device->name());
  return json;
}

}  // namespace

Json measure_machine(const std::filesystem::path& folder, Device* device) {
  const int cpus = std::max(1, static_cast<int>(read_cpu_limit()));
  // The best of some tries: other work only ever makes them less.
  auto best = [](auto measure, int threads) {
    double most = 0;
    for (int i = 0; i < 4; ++i) most = std::max(most, measure(threads, 0.1));
    return most;
  };
  Json json;
  json["memory_bytes_s"] = best(copying, 1);
  json["memory_bytes_s_all"] = best(copying, cpus);
  const double one = best(computing, 1);
  json["cores"] = one > 0 ? best(computing, cpus) / one : kNotMeasured;
  json["drive"] = DriveTrial(folder).json();
  json["copy_bytes_s"] =
      device != nullptr && device->memory_kind() == MemoryKind::cuda
          ? Json(copying_to(*device))
          : Json();
  return json;
}

Json kept_profile(const std::filesystem::path& folder) try {
  const std::filesystem::path file = folder / "machine.json";
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  Json kept = Json::parse(real_files().read(file), file.string());
  const Json* of = kept.is_object() ? kept.find("of") : nullptr;
  if (of == nullptr || !of->is_object()) return {};
  const Json here = identity_of(nullptr);
  for (const auto& [key, value] : here.object())
    if (const Json* found = of->find(key);
        key != "device" && (found == nullptr || *found != value))
      return {};
  return kept;
} catch (const Error&) {
  return {};
}

Json machine_profile(const std::filesystem::path& folder, Device* device,
                     bool again) {
  const std::filesystem::path file = folder / "machine.json";
  const Json identity = identity_of(device);
  std::error_code none;
  if (!again && std::filesystem::exists(file, none)) try {
      Json kept = Json::parse(real_files().read(file), file.string());
      const Json* of = kept.is_object() ? kept.find("of") : nullptr;
      if (of != nullptr && *of == identity) return kept;
    } catch (const Error& error) {
      log(LogLevel::info,
          std::string("the machine is measured again: ") + error.what());
    }
  real_files().make_folders(folder);
  Json json = measure_machine(folder, device);
  json["of"] = identity;
  json["measured"] = utc_text(std::chrono::system_clock::now());
  real_files().write_atomic(file, json.dump(2) + "\n");
  return json;
}

}  // namespace penstock
