#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/once.h"
#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// An array whose first dimension counts rows: [rows, ...], dense, in C order,
/// in host memory. Its bytes must not change while it is loaded from.
struct NamedArray {
  std::string name;
  TensorView view;
  /// Keeps the bytes alive; released on the thread that uses them last.
  std::shared_ptr<const void> owner;
};

/// How arrays become rows.
struct ArrayDatasetOptions {
  std::string cache = "auto";  ///< auto, device or ram
  RingBytes ring_bytes = {};   ///< what the loaders' rings will take
  TierBudgets budgets = {};    ///< of `auto`
  /// Row numbers of each side, in any order, also more than once. Not given:
  /// every row is in train, and none in val and test.
  std::optional<std::vector<SampleId>> train = {};
  std::optional<std::vector<SampleId>> val = {};
  std::optional<std::vector<SampleId>> test = {};
  /// How the train side is drawn: by an array that need not be one of the
  /// rows', of shape [rows], or to balance [rows, ...].
  Drawing drawing = {};
  std::optional<NamedArray> drawn_by = {};
  /// Called with the tier plan before memory is allocated. May be empty.
  std::function<void(const TierPlan&)> planned = {};
};

/// The tensors of a batch of these arrays, one each, seen per row. Throws
/// Error(request) for arrays that make no rows: none at all, no name or one
/// name twice, no dimension, different lengths, no rows, other memory than the
/// host's.
RowLayout layout_of(std::span<const NamedArray> arrays);

/// Rows that are arrays in memory: sample i is row i of each.
///
/// On a device that is the host, and in tier `ram`, they are used in place. In
/// tier `device` each is copied there once. The owners are released with the
/// rows, and so with the last loader.
class ArrayDataset final : public Dataset {
 public:
  /// Throws what layout_of() and plan_tiers() throw, and Error(request) for an
  /// invalid row number and for invalid weights.
  ArrayDataset(std::vector<NamedArray> arrays,
               const ArrayDatasetOptions& options, Device& device);

  void select(Side side, std::span<SampleId> ranks) const override;
  /// SHA-256 over names, types, shapes, bytes and sides, in hex. Made when it
  /// is first asked for, which reads all arrays.
  const std::string& fingerprint() const override;
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;
  /// The arrays are on the host: nothing goes back to the device.
  OffDevice off_device(std::size_t bytes, Device& device) const override;

 private:
  using Numbers = std::optional<std::vector<SampleId>>;
  const Numbers& on(Side side) const {
    return side == Side::train ? train_ : side == Side::val ? val_ : test_;
  }
  std::string hashed(std::size_t step) const;
  void find_draws(const ArrayDatasetOptions& options);
  void find_place(const ArrayDatasetOptions& options, const Device& device);
  void copy_to(Device& device);

  const std::vector<NamedArray> arrays_;
  const RowLayout layout_;
  const Numbers train_, val_, test_;
  const RingBytes ring_bytes_;
  std::vector<Table> tables_;  // on the device, by array; else none
  mutable Once hashed_;
  mutable std::string fingerprint_;
};

}  // namespace penstock
