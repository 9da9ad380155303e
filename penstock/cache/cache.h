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

#include "penstock/base/host_limits.h"
#include "penstock/base/json.h"
#include "penstock/base/sample.h"
#include "penstock/cache/run_table.h"
#include "penstock/cache/shown_bytes.h"
#include "penstock/cache/store.h"
#include "penstock/device/device.h"

namespace penstock {

/// Where the prepared rows of a data set are kept while it is trained on (its
/// cache level).
enum class Tier : std::uint8_t {
  device,  ///< packed in the device's memory: a batch is one gather
  pinned,  ///< packed in host memory that the device reads: the same gather
  ram,     ///< packed in host memory: gathered into a slot, then copied
  disk,    ///< packed in a store, which is mapped: otherwise as `ram`
  none,    ///< not kept: read from the source by id lists
};

std::string_view name_of(Tier tier);

/// A device gathers from it.
inline bool gathered_on_device(Tier tier) { return tier <= Tier::pinned; }

/// Rows of a data set that are kept in one tier.
struct TierRows {
  Tier tier = Tier::none;
  std::int64_t rows = 0;
  bool operator==(const TierRows&) const = default;
};

/// How many bytes of rows each tier may hold at most; missing: what is free; 0:
/// the tier is left out.
struct TierBudgets {
  std::optional<std::size_t> device, pinned, ram, disk;

  const std::optional<std::size_t>& of(Tier tier) const;
  bool any() const { return device || pinned || ram || disk; }
  bool operator==(const TierBudgets&) const = default;
};

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
  /// These two where the device keeps a part of the rows.
  std::size_t ring_mixed_bytes = 0, ring_mixed_host_bytes = 0;
  /// Host memory of the threads that finish rows, whatever the tier.
  std::size_t finishing_bytes = 0;
  /// auto, device, pinned, ram, disk or none
  std::string tier = "auto";
  TierBudgets budgets = {};  ///< of `auto`
  /// Rows are of equal size: each tier may hold a part of them.
  bool divisible = false;
  std::int64_t batch_rows = 1;  ///< no budget is smaller, but 0
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
  std::size_t readers = 0;           ///< beside that: planned for readers
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

/// Those of the host and a device, without a disk.
TierLimits tier_limits(const HostLimits& host, const Device& device);

/// The decision, with its reasons, made before anything is allocated.
struct TierPlan {
  /// What a tier would take, the ring of batches included.
  struct Line {
    Tier tier;
    std::size_t rows_bytes = 0;    ///< of the rows alone, or of their hashes
    std::size_t host_bytes = 0;    ///< in all, of the host's memory
    std::size_t device_bytes = 0;  ///< in all, of a device's own memory
    std::size_t disk_bytes = 0;    ///< in all, of files
    std::int64_t rows = 0;         ///< that are kept here, where it is chosen
    /// Of rows like these, the most that would fit; none: unknown, or any.
    std::optional<std::int64_t> most_rows = {};
    bool fits = false;  ///< in 80 % of what is free, requested or not
    /// It would fit, and a budget allows less: the setting of that budget.
    std::string lacks_budget = {};
    bool chosen = false;
    /// "fits", "needs 3.1 GiB on the device, 80 % of 2.0 GiB are free", "fits,
    /// not requested", "the device's memory is the host's", ...
    std::string why;

    std::size_t bytes() const { return host_bytes + device_bytes + disk_bytes; }
  };
  Tier tier = Tier::none;        ///< the slowest that holds rows
  std::vector<TierRows> places;  ///< of the rows in order of id, fastest first
  std::vector<Line> lines;       ///< the fastest first
  TierLimits limits;
  std::optional<ScanMemory> scan;  ///< of a table
  /// Rows that sizes were reckoned from, where not all are known; 0: they are.
  std::int64_t predicted_from = 0;
  std::vector<std::string> notes = {};  ///< on how rows come from there

  /// The first id in this tier or a slower one.
  SampleId first_in(Tier tier) const;
  /// What the chosen tiers take of the device's own memory.
  std::size_t device_bytes() const;
  /// The device keeps a part of the rows, not all of them.
  bool mixed() const {
    return !gathered_on_device(tier) && first_in(Tier::ram) > 0;
  }

  /// One line per tier, one on the scan and one on what is free, for people.
  std::string text() const;
  Json json() const;
};

/// The fastest tier that fits in 80 % of what is free, or the requested one;
/// for `auto`, where rows are divisible, several tiers, the fastest until it is
/// full. A requested tier that does not fit is an Error(out_of_memory) with
/// both numbers, and so is a ring of batches that leaves room for no tier, not
/// even `none`; a budget that cannot hold the rows of one batch is an
/// Error(request).
TierPlan plan_tiers(const TierRequest& request, const TierLimits& limits);

/// The plan of the same request once rows have moved to `places`.
TierPlan moved(const TierPlan& plan, std::vector<TierRows> places,
               const TierRequest& request);

/// The rows of a data set, packed in order of id, in one tier or in several.
///
/// Filled once by append(), then only gathered from; gathering is
/// thread-safe, each thread with its own stream. Must not outlive its device.
class Table {
 public:
  /// `tier` is device, pinned or ram.
  Table(Tier tier, std::int64_t rows, std::size_t row_bytes, Device& device);
  /// In these tiers, the fastest first. Those of tier `disk` are there already,
  /// in an array of the store that holds all rows.
  Table(std::span<const TierRows> places, std::size_t row_bytes, Device& device,
        std::shared_ptr<const Store> store = nullptr,
        std::string_view array = {});
  /// Tier `disk`: filled already, an array of the store.
  Table(std::shared_ptr<const Store> store, std::string_view array,
        std::size_t row_bytes);
  ~Table();
  Table(Table&&) noexcept;

  /// Where the next `rows` rows go, one after the other; write all of them,
  /// from any threads, before the next call. At most `most_rows()` at a time.
  std::byte* append(std::int64_t rows);
  /// That may be appended next; 0 when all are there.
  std::int64_t most_rows() const;
  /// The rows that were appended are in one piece of host memory, until the
  /// filling ends too.
  bool on_host() const;
  /// Permutes all rows in place, once they are appended: row `i` becomes the
  /// one that was appended as `place(i)`. Each place occurs once. Only on the
  /// host.
  void reorder(const std::function<std::int64_t(std::int64_t)>& place);
  /// Ends the filling: all rows are where they belong when it returns.
  void seal();

  /// The same rows, none of them on the device, whose memory is free once this
  /// table is destroyed: in host memory, of which the first `kept` rows have a
  /// piece of their own, or, where a part of them is on disk, all there. Other
  /// rows share this table's memory.
  Table off_device(Tier to, std::int64_t kept, Device& device) const;
  /// The same rows, the first of them copied to the device from the first
  /// piece, which is on the host or disk.
  Table on_device(std::int64_t rows, Device& device) const;
  /// Each tier's rows.
  std::vector<TierRows> places() const;

  /// Checks that these rows, of which -1 means no row, are as they were
  /// written. Throws Error(source), code store.damaged, in tier `disk`.
  void check(std::span<const std::int64_t> rows) const;

  /// Rows [first, first + rows), one after the other.
  struct Piece {
    Tier tier = Tier::none;
    SampleId first = 0;
    std::int64_t rows = 0;
    const std::byte* data = nullptr;  ///< the first row, on device or host
  };
  std::span<const Piece> pieces() const;
  /// Where a row is, on the device or the host according to its tier.
  const std::byte* row(SampleId id) const;

  std::size_t bytes() const;  ///< of all rows
  /// The first row.
  const std::byte* data() const;

 private:
  struct State;
  explicit Table(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
