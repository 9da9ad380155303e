#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/dataset/dataset_facts.h"
#include "penstock/dataset/filler.h"
#include "penstock/dataset/read_ahead.h"

namespace penstock {

/// Memory of the rings of loaders: on the device, and pinned on the host where
/// batches are copied.
struct RingBytes {
  std::size_t device = 0, host = 0;
};

/// How a loader reads a data set.
struct FillerOptions {
  Side side = Side::train;
  std::uint64_t seed = 0;   ///< of the random numbers that are drawn per epoch
  bool per_sample = false;  ///< reads each row by itself, as a comparison
  /// The host finishes what a device might, where the rows are not kept there:
  /// the places are in its memory, and queue() is not called.
  bool on_host = false;
};

class Dataset;

/// Rows that have left a device.
struct OffDevice {
  std::shared_ptr<const Dataset> rows = {};  ///< null: the device keeps none
  /// The same rows, with those back on the device that need not have left it.
  /// Empty: none.
  std::function<std::shared_ptr<const Dataset>(Device& device)> back = {};
};

/// What a loader makes batches of: numbered samples.
///
/// Immutable, so thread-safe. Must not outlive its device. A data set is asked
/// once per batch, or per item of it, never per row.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// What is known of the rows. They never change, once the data set is there.
  const DatasetFacts& facts() const { return facts_; }
  /// Differs when the rows do: what a saved position is checked against. May
  /// be made when it is first asked for.
  virtual const std::string& fingerprint() const = 0;
  /// Replaces ranks within a side, 0 .. rows_on(side) - 1, by the ids of the
  /// samples there. -1 stays. Needs no lock: threads may call it at once.
  virtual void select(Side side, std::span<SampleId> ranks) const = 0;
  /// How a person finds a sample, which is empty for padding: its key, or its
  /// number where the rows have no keys.
  virtual Json key_of(SampleId sample) const { return Json(sample); }
  /// The elements that each range holds of the `varying`-th output whose
  /// lengths differ; 0 of padding. Behind these, at `facts().longest.size()` +
  /// f: of the whole stored runs of field f, where a device finishes it. A pure
  /// function.
  virtual void lengths(std::size_t varying, std::span<const SampleRange> ranges,
                       std::span<std::int32_t> out) const;
  /// Called by each thread of a loader, once. The filler looks at this data set
  /// as long as it lives.
  virtual std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const = 0;
  /// Starts I/O threads, at most `facts().most_readers`, for one loader; null
  /// where that is 0. They look at this data set.
  virtual std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options /*options*/) const {
    return nullptr;
  }

  /// The same rows, none of them kept on the device but on the host, so that
  /// what this one keeps there is free once it is destroyed; to free `bytes`
  /// some need not have left it. Throws Error(out_of_memory) where the host has
  /// no room for them.
  virtual OffDevice off_device(std::size_t /*bytes*/,
                               Device& /*device*/) const {
    return {};
  }

  /// What was found over the train rows, by the fields' names; of several
  /// sources what is the same in all, and then "sources", what is not, by
  /// source. Null where nothing is fitted, and where not all rows are prepared
  /// yet.
  Json statistics() const;
  std::int64_t rows() const { return facts_.rows; }
  /// Those that are on a side.
  std::int64_t rows_on(Side side) const {
    return side == Side::train  ? facts_.on_side[0]
           : side == Side::val  ? facts_.on_side[1]
           : side == Side::test ? facts_.on_side[2]
                                : 0;
  }
  const std::vector<Output>& outputs() const { return facts_.outputs; }
  const TierPlan& plan() const { return facts_.plan; }

 protected:
  DatasetFacts facts_;  ///< written before the data set is shared
};

/// The elements of a sample of `length` elements that a range holds.
inline std::int32_t elements_in(const SampleRange& range, std::int32_t length) {
  if (range.sample < 0) return 0;
  std::int32_t end = range.end < length ? range.end : length;
  return end > range.begin ? end - range.begin : 0;
}

}  // namespace penstock
