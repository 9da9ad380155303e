#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/dataset/dataset_base.h"
#include "penstock/dataset/table/larger_rows.h"
#include "penstock/dataset/table/placed_rows.h"
#include "penstock/device/device.h"

namespace penstock {

/// A data set after its initial scan of a source: keys, statistics, sides, and
/// the packed rows in their tier.
class TableDataset final : public Dataset {
 public:
  /// Reads the table once. Throws what the source and the transforms throw,
  /// and Error(source) for two rows with one key or no row at all.
  static std::shared_ptr<const TableDataset> prepare(
      const TableDatasetOptions& options, Device& device);
  /// The same from a source that was opened with `requests_of(options)`.
  static std::shared_ptr<const TableDataset> prepare(
      const TableDatasetOptions& options, std::shared_ptr<Source> source,
      Device& device);
  /// The same of a source that its fields are bound to.
  static std::shared_ptr<const TableDataset> prepare(
      const TableDatasetOptions& options, BoundSource source, Device& device);
  /// Those that an earlier run has left in their store; null: none
  /// that can be used. Throws what prepare() throws of such rows.
  static std::shared_ptr<const TableDataset> of_store(
      const TableDatasetOptions& options, BoundSource source, Device& device);

  void select(Side side, std::span<SampleId> ranks) const override;
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  /// As FoundRows has it.
  const std::string& fingerprint() const override {
    return found_->fingerprint;
  }
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override;

  OffDevice off_device(std::size_t bytes, Device& device) const override;

  /// How a row is stored, apart from what differs in length.
  const RowLayout& layout() const { return origin_->layout; }
  /// As Store::losses(), of the store that rows are read from; 0: of none.
  std::int64_t losses() const {
    return placed_.store == nullptr ? 0 : placed_.store->losses();
  }
  /// After store.damaged: removes the store, which the next run makes again
  /// from the source, and throws an error that says so. Where that cannot be,
  /// or of another error, it does nothing.
  void remove_damaged(const Error& error) const;
  /// By sample id. Those of a store are read when they are first asked for.
  const KeyList& keys() const { return found_->keys->list(); }
  const SideIndex& side(Side side) const { return found_->sides.on(side); }
  const std::vector<Field>& fields() const { return origin_->options.fields; }
  Json key_of(SampleId sample) const override;
  /// Adds the file that the source had a sample in, where it knows that.
  void add_place(SampleId sample, std::string& place) const;
  RowEncoder encoder() const { return origin_->encoder(found_->statistics); }
  /// The stored rows, but for those in tier `none`; null where that is all.
  const Table* table() const { return placed_.table.get(); }
  /// Where in FillItem::to the stored rows come together that a device does not
  /// keep, where it keeps others.
  std::optional<std::size_t> staged_place(Side side) const;
  const RunTable* runs(std::size_t field) const {
    return placed_.runs[field].get();
  }
  /// What the host sees of a run that is kept: all of it, or where the device
  /// keeps it what StoredForm::seen_of() says.
  std::span<const std::byte> seen_run(std::size_t field, SampleId id) const {
    const auto& heads = placed_.heads;
    const bool there = field < heads.size() && heads[field] != nullptr;
    return (there ? heads : placed_.runs)[field]->row(id);
  }
  /// What is kept beside them in the larger form of their fields; null: none.
  LargerRows* larger() const { return larger_.get(); }
  /// Rows that are kept, and are bad samples.
  const DamagedRows& damaged() const { return placed_.damaged; }

  /// Reads rows again (tier `none`): one per thread.
  class RowReader {
   public:
    /// `meters` count the reading, and the parsing and checking.
    explicit RowReader(const TableDataset& dataset,
                       FillMeters* meters = nullptr);
    ~RowReader();
    /// One statement, where the rows are not read `ahead`; `rows` then holds
    /// these ids' rows, in order. Throws Error(source) when a row is gone or is
    /// no longer what it was.
    void read(std::span<const SampleId> ids, ParsedBlock& rows,
              ItemRead* ahead = nullptr);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  friend class TablePreparation;
  TableDataset(std::shared_ptr<const TableOrigin> origin,
               std::shared_ptr<const FoundRows> found, PlacedRows placed,
               const MeasuredRows& measured, Placement placement);
  void find_lengths();
  std::unique_ptr<LargerRows> larger_rows() const;
  /// The same rows where they are now.
  std::shared_ptr<const TableDataset> moved_to(PlacedRows placed,
                                               const Device& device) const;

  const std::shared_ptr<const TableOrigin> origin_;
  const std::shared_ptr<const FoundRows> found_;
  const PlacedRows placed_;
  const MeasuredRows measured_;
  const Placement placement_;
  std::vector<std::size_t> varying_;  // the field of each output that varies
  std::unique_ptr<LargerRows> larger_;
};

}  // namespace penstock
