#pragma once

#include <cstdint>
#include <span>

#include "penstock/base/base.h"
#include "penstock/device/device.h"
#include "penstock/exec/exec.h"
#include "penstock/sampling/sampling.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

class ItemRead;

/// What the stages are called that work on fields.
struct StageNames {
  std::string parse = "parse", make = "collate", gather = "gather";
};
/// After what most of their time goes into: "tokenize", "decode". Where several
/// fields have such work, all are named: "decode and transform".
StageNames stage_names(const std::vector<Field>& fields);

/// The meters of a loader's stages, shared by its fillers. Rows that are kept
/// (tier `device` or `ram`) are gathered; all others are read, prepared and
/// packed. Both may be mapped then.
struct FillMeters {
  /// `readers`: threads that read, of at most `most_readers` that would gain
  /// something; 0: the workers read.
  FillMeters(int workers, const StageNames& names, bool per_sample,
             int readers = 0, int most_readers = 0)
      : plan("plan", workers, "loader"),
        read(per_sample ? "read per sample" : "read",
             readers > 0 ? readers : workers,
             readers == 0             ? "loader"
             : readers < most_readers ? "readers"
                                      : "all readers",
             per_sample ? StageWork::reads_per_sample : StageWork::reads),
        prepare(names.parse, workers, "loader", StageWork::parses),
        pack(names.make, workers, "loader", StageWork::makes),
        gather(names.gather, workers, "loader", StageWork::gathers),
        map("map", workers, "loader"),
        on_device("finish on device", workers, "loader", StageWork::on_device) {
  }
  StageMeter plan, read, prepare, pack, gather, map;
  /// Queueing what the device does for fields, with what the host does for
  /// that, and waiting for the device's decoders.
  StageMeter on_device;
};

/// Finds samples that take the place of bad ones, for a filler that needs the
/// whole batch before it can go on: one that maps it.
class Substitutes {
 public:
  virtual ~Substitutes() = default;
  /// Puts another sample in that place of FillItem::ids, where `fault` was
  /// found, and returns its occurrence. Throws Error(transform), code
  /// data.too_many_bad, when too many were bad.
  virtual std::int64_t next(std::size_t range, const RowFault& fault) = 0;
  /// Whether next() was called for that place.
  virtual bool replaced(std::size_t range) const = 0;
};

/// Ranges of a batch that are to be filled: whole bins, one after the other.
struct FillItem {
  std::span<const SampleId> ids;  ///< by range; -1: padding
  /// By output of the data set, and then what is copied for fields that a
  /// device finishes (kStagedPlaces); rows of equal size begin at `data`.
  std::span<const TensorPlace> to;
  /// Where a batch is queued: the same places in host memory; those of tensors
  /// that the device makes are empty.
  std::span<const TensorPlace> on_host = {};
  /// Where lengths differ; else empty.
  std::span<const SampleRange> ranges = {};
  /// By range, as StoredRow::occurrence has it; empty: all 0.
  std::span<const std::int64_t> occurrences = {};
  Position at;  ///< of the batch
  /// What I/O threads have read of these samples; null: nothing, the filler
  /// reads them.
  ItemRead* read = nullptr;
  /// Null: the caller replaces bad samples, or masks them.
  Substitutes* substitutes = nullptr;
};

/// Fills ranges. One per thread, and called by that thread alone.
class SlotFiller {
 public:
  virtual ~SlotFiller() = default;
  /// Writes every tensor of every range of `item`, which is host memory, or in
  /// tier `device` queues that on `stream`: zeros for padding in tensors of
  /// equal size. Ranges whose sample is bad are rejected and may be left
  /// unchanged. What it throws is delivered in the batch's turn, and ends the
  /// loader.
  virtual void fill(const FillItem& item, Stream& stream, Faults& faults) = 0;
  /// Queues what a device finishes, once all that was filled has been queued to
  /// be copied there: for a whole batch, whose places are in its memory. Writes
  /// zeros where an id is -1.
  virtual void queue(const FillItem& /*batch*/, std::byte* /*scratch*/,
                     Stream& /*stream*/) {
    PENSTOCK_ASSERT(false, "who leaves fields to a device queues them");
  }
};

}  // namespace penstock
