#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/dataset_facts.h"
#include "penstock/dataset/table/larger_plan.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// The longest run of a field.
struct LongestRun {
  std::size_t field = 0;
  std::int32_t elements = 0;
};

/// What a scan, or the store of an earlier one, has measured of the rows, or
/// what a few of them let expect.
struct MeasuredRows {
  std::int64_t rows = 0;
  std::array<std::int64_t, 3> on_side = {};  ///< train, val, test
  std::vector<LongestRun> longest = {};      ///< of each field that has runs
  std::size_t run_bytes = 0;                 ///< of all rows, as stored
  std::size_t key_bytes = 0;                 ///< of all rows, in a store
  /// Of the runs that have a larger form which makes the same batches, in it.
  /// Of rows that are read by position, of whole rows.
  std::size_t larger_bytes = 0;
  /// What a thread holds that finishes the largest row.
  std::size_t finishing_bytes = 0;
  bool in_store = false;
  std::optional<ScanMemory> scan = {};  ///< missing: the rows are a store's
  /// Bytes of all rows as their source has them, where each batch reads its
  /// rows by position and no tier keeps them; else missing.
  std::optional<std::size_t> read_bytes = {};

  bool by_position() const { return read_bytes.has_value(); }
};

/// Where the rows may go.
struct Room {
  TierLimits limits;
  MemoryKind memory = MemoryKind::cpu;  ///< of the device
  /// What the rings of the loaders take where the rows are copied to the
  /// device, where it keeps all of them, and where it keeps a part.
  RingBytes copied = {}, kept = {}, mixed = {};
};

/// Where the rows are kept, what a device does with them there, and why.
struct Placement {
  TierRequest request;
  TierPlan plan;
  /// What a device finishes, as DatasetFacts has it.
  std::array<std::vector<DeviceField>, 2> device_fields = {};
  /// Which rows are kept in the larger form of their fields. `plan` counts its
  /// bytes and has its note.
  LargerPlan larger = {};
};

/// Where these rows may go on this machine at this moment. `replaced`: bytes on
/// the disk that are free again once the rows are in a store.
Room room_for(const TableDatasetOptions& asked, const MeasuredRows& measured,
              const Device& device, std::size_t replaced);

/// A pure function. Throws what plan_tiers() throws.
Placement place(const TableDatasetOptions& asked, const MeasuredRows& measured,
                const Room& room);

/// The placement of the same rows once they are where `plan` says.
Placement placed_by(TierPlan plan, const TierRequest& request,
                    const TableDatasetOptions& asked,
                    const MeasuredRows& measured, MemoryKind memory);

/// In elements, the longest sample of each output whose lengths differ.
std::vector<std::int32_t> longest_samples(const std::vector<Field>& fields,
                                          const std::vector<LongestRun>& runs);

/// Places the rows of a table with what there is now, and again where another
/// program has taken the memory meanwhile. Tells `asked.planned` each time.
class Placer {
 public:
  /// `store`: the file that the rows may be written to; of it, `begun` bytes
  /// are there already.
  Placer(TableDatasetOptions asked, MeasuredRows measured, const Device& device,
         std::filesystem::path store, std::size_t begun = 0);

  const MeasuredRows& measured() const { return measured_; }
  const Placement& placement() const { return placement_; }
  const TierPlan& plan() const { return placement_.plan; }

  /// From here on the rows are in their store.
  void are_stored() { measured_.in_store = true; }
  /// After an error of who took the memory that the plan names. False: it
  /// stays unchanged.
  bool places_again(const Error& error);

 private:
  void place();

  const TableDatasetOptions asked_;
  MeasuredRows measured_;
  const Device& device_;
  const std::filesystem::path store_;
  const std::size_t begun_;
  Placement placement_;
  int left_ = 3;
};

}  // namespace penstock
