#pragma once

/// Where prepared rows are kept: the plan of the cache levels, and the packed
/// table.
///
///     HostLimits host = read_host_limits();
///     TierPlan plan =
///         plan_tiers({.rows = 1'000'000, .row_bytes = 288},
///                    {.ram_free = host.memory_free, .device_is_host = true});
///     std::printf("%s", plan.text().c_str());

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/cache/run_table.h"
#include "penstock/cache/shown_bytes.h"
#include "penstock/cache/store.h"
#include "penstock/device/device.h"

namespace penstock {

/// Where the prepared rows of a data set are kept while it is trained on (its
/// cache level).
enum class Tier : std::uint8_t {
  device,  ///< packed in the device's memory: a batch is one gather
  ram,     ///< packed in host memory: gathered into a slot, then copied
  disk,    ///< packed in a store, which is mapped: otherwise as `ram`
  none,    ///< not kept: read from the source by id lists
};

std::string_view name_of(Tier tier);

/// What is to be kept, as measured by the initial scan, and what the ring of
/// batches takes in addition, whatever the tier.
struct TierRequest {
  std::int64_t rows = 0;
  std::size_t row_bytes = 0;
  std::size_t run_bytes = 0;  ///< of all rows, where they differ in length
  /// Fields are finished, or batches changed, on the host: no tier `device`,
  /// unless that is the host.
  bool finished_on_host = false;
  /// Memory of the device for the slots of the ring. On a device that is the
  /// host, host memory.
  std::size_t ring_device_bytes = 0;
  /// Of these slots too, but in tier `device`: rows that are copied there to be
  /// finished.
  std::size_t ring_staged_bytes = 0;
  /// Pinned memory for the slots of the ring, in tiers `ram` and `none`. Does
  /// not count on a device that is the host: there is no copy to stage.
  std::size_t ring_host_bytes = 0;
  std::string tier = "auto";  ///< auto, device, ram, disk or none
  /// The rows are arrays in host memory that the caller owns: tier `ram` takes
  /// no more of it, and there is no tier `none`.
  bool in_ram = false;
  /// The rows are in a store already: tier `disk` fits.
  bool on_disk = false;
  /// What a store holds beside the rows: keys, sides, lengths.
  std::size_t beside_rows = 0;
};

/// At most this share of free memory is taken. The rest is for what cannot be
/// foreseen: the model, the libraries, other processes.
inline constexpr double kShareOfFree = 0.8;

/// What the initial scan of a table held in host memory, and what it might.
struct ScanMemory {
  std::size_t bytes = 0;             ///< at most, at any time
  std::optional<std::size_t> limit;  ///< none: free memory is unknown
  std::size_t spilled = 0;           ///< values that went to temporary files
};

/// What is available, from real limits (cgroup, free memory, the device's
/// memory).
struct TierLimits {
  /// Where stores are; without it there is no tier `disk`.
  std::optional<std::size_t> disk_free;
  std::string disk_origin;  ///< the folder
  /// Unknown where the system does not report it; then it refuses no tier.
  std::optional<std::size_t> ram_free;
  std::string ram_origin;  ///< "MemAvailable", "/sys/fs/cgroup/job", ...
  std::size_t device_free = 0;
  bool device_is_host = false;  ///< cpu: its memory is the host's
};

/// The decision, with its reasons, made before anything is allocated.
struct TierPlan {
  /// What a tier would take, the ring of batches included.
  struct Line {
    Tier tier;
    std::size_t rows_bytes = 0;    ///< of the rows alone, or of their hashes
    std::size_t host_bytes = 0;    ///< in all, of the host's memory
    std::size_t device_bytes = 0;  ///< in all, of a device's own memory
    std::size_t disk_bytes = 0;    ///< in all, of files
    /// Of rows like these, the most that would fit; none: unknown, or any.
    std::optional<std::int64_t> most_rows = {};
    bool fits = false;  ///< in 80 % of what is free, requested or not
    bool chosen = false;
    /// "fits", "needs 3.1 GiB on the device, 80 % of 2.0 GiB are free", "fits,
    /// not requested", "the device's memory is the host's", ...
    std::string why;

    std::size_t bytes() const { return host_bytes + device_bytes + disk_bytes; }
  };
  Tier tier = Tier::none;
  std::vector<Line> lines;  ///< the fastest first
  TierLimits limits;
  std::optional<ScanMemory> scan;  ///< of a table

  /// One line per tier, one on the scan and one on what is free, for people.
  std::string text() const;
  Json json() const;
};

/// The fastest tier that fits in 80 % of what is free, or the requested one. A
/// requested tier that does not fit is an Error(out_of_memory) with both
/// numbers, and so is a ring of batches that leaves room for no tier, not even
/// `none`.
TierPlan plan_tiers(const TierRequest& request, const TierLimits& limits);

/// The rows of a data set, packed one after the other in order of id.
///
/// Filled once by append(), then only gathered from; gathering is
/// thread-safe, each thread with its own stream. Must not outlive its device.
class Table {
 public:
  /// `tier` is device or ram.
  Table(Tier tier, std::int64_t rows, std::size_t row_bytes, Device& device);
  /// Tier `disk`: filled already, an array of the store.
  Table(std::shared_ptr<const Store> store, std::string_view array,
        std::size_t row_bytes);
  ~Table();
  Table(Table&&) noexcept;

  /// Where the next `rows` rows go, one after the other; write all of them,
  /// from any threads, before the next call. At most `most_rows()` at a time.
  std::byte* append(std::int64_t rows);
  /// At least 1.
  std::int64_t most_rows() const;
  /// The rows that were appended are host memory, until the filling ends too.
  bool on_host() const;
  /// Permutes all rows in place, once they are appended: row `i` becomes the
  /// one that was appended as `place(i)`. Each place occurs once. Only on the
  /// host.
  void reorder(const std::function<std::int64_t(std::int64_t)>& place);
  /// Ends the filling: all rows are where they belong when it returns.
  void seal();

  /// Checks that these rows, of which -1 is none, are as they were written.
  /// Throws Error(source), code store.damaged, in tier `disk`.
  void check(std::span<const std::int64_t> rows) const;

  Tier tier() const;
  std::size_t bytes() const;
  /// The first row, on the device or the host according to the tier.
  const std::byte* data() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
