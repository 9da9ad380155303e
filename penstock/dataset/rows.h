#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "penstock/base/base.h"
#include "penstock/cache/cache.h"
#include "penstock/device/device.h"
#include "penstock/exec/exec.h"
#include "penstock/sampling/sampling.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// The meters of a loader's stages, shared by its fillers. Rows that are kept
/// (tier `device` or `ram`) are gathered; all others are read, prepared and
/// packed. Both may be mapped then.
struct FillMeters {
  FillMeters(int workers, bool per_sample)
      : plan("plan", workers, "loader"),
        read(per_sample ? "read per sample" : "read", workers, "loader"),
        prepare("prepare", workers, "loader"),
        pack("pack", workers, "loader"),
        gather("gather", workers, "loader"),
        map("map", workers, "loader") {}
  StageMeter plan, read, prepare, pack, gather, map;
};

/// Rows of a batch that are to be filled: part of it or all, one after the
/// other.
struct RowTarget {
  std::span<const SampleId> ids;  ///< -1: a row of zeros
  /// For each tensor of the layout, where its row of ids[0] goes; the others
  /// follow without a gap.
  std::span<std::byte* const> tensors;
  Position at;  ///< of the batch
};

/// Fills rows. One per thread, and called by that thread alone.
class RowFiller {
 public:
  virtual ~RowFiller() = default;
  /// Writes every tensor of every row of `target`, which is host memory, or in
  /// tier `device` queues that on `stream`. What it throws is delivered in the
  /// batch's turn, and ends the loader.
  virtual void fill(const RowTarget& target, Stream& stream) = 0;
};

/// What a loader makes batches of: numbered rows that all look alike.
///
/// Immutable, so thread-safe. Must not outlive its device. A kind of rows is
/// asked once per batch, or per piece of it, never per row.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t rows() const = 0;
  /// Those that are on a side.
  virtual std::int64_t rows_on(Side side) const = 0;
  /// Replaces ranks within a side, 0 .. rows_on(side) - 1, by the ids of the
  /// samples there. -1 stays. Needs no lock: threads may call it at once.
  virtual void select(Side side, std::span<SampleId> ranks) const = 0;
  /// The tensors of a batch, seen per row.
  virtual const RowLayout& layout() const = 0;
  /// Where the rows live, and why there.
  virtual const TierPlan& plan() const = 0;
  /// Differs when the rows do: what a saved position is checked against. May
  /// be made when it is first asked for.
  virtual const std::string& fingerprint() const = 0;
  /// Called by each thread of a loader, once. The filler looks at these rows
  /// as long as it lives. `per_sample`: reads each row by itself, as a
  /// comparison.
  virtual std::unique_ptr<RowFiller> open_filler(FillMeters& meters,
                                                 bool per_sample) const = 0;
  /// True where a batch is filled as a whole, by one worker: what becomes of a
  /// row depends on those beside it.
  virtual bool whole_batches() const { return false; }
};

}  // namespace penstock
