#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/dataset_base.h"
#include "penstock/dataset/table/larger_rows.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/table_options.h"
#include "penstock/dataset/table/table_store.h"
#include "penstock/device/device.h"
#include "penstock/exec/exec.h"
#include "penstock/monitor/monitor.h"
#include "penstock/sampling/sampling.h"
#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

class Spill;
class StoreOfScan;
class StoreRemaker;
struct ScanLimit;

/// What a source must give for these options, after the key.
std::vector<ColumnRequest> requests_of(const TableDatasetOptions& options);

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
  /// Those that an earlier run has left in their store; null: none
  /// that can be used. Throws what prepare() throws of such rows.
  static std::shared_ptr<const TableDataset> of_store(
      const TableDatasetOptions& options, std::shared_ptr<Source> source,
      Device& device);
  ~TableDataset() override;

  void select(Side side, std::span<SampleId> ranks) const override;
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  /// SHA-256 over keys and prepared rows in order of id, in hex.
  const std::string& fingerprint() const override { return fingerprint_; }
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override;

  OffDevice off_device(std::size_t bytes, Device& device) const override;

  /// How a row is stored, apart from what differs in length.
  const RowLayout& layout() const { return layout_; }
  /// As Store::losses(), of the store that rows are read from; 0: of none.
  std::int64_t losses() const {
    return store_ == nullptr ? 0 : store_->losses();
  }
  /// After store.damaged: removes the store, which the next run makes again
  /// from the source, and throws an error that reports it. Where that cannot
  /// be, or of another error, it does nothing.
  void remove_damaged(const Error& error) const;
  /// By sample id. Those of a store are read when they are first asked for.
  const KeyList& keys() const { return keys_->list(); }
  const SideIndex& side(Side side) const {
    return side == Side::train ? train_ : val_;
  }
  const std::vector<Field>& fields() const { return options_.fields; }
  Json key_of(SampleId sample) const override;
  /// Adds the file that the source had a sample in, where it knows that.
  void add_place(SampleId sample, std::string& place) const;
  RowEncoder encoder() const;
  /// The stored rows, but for those in tier `none`; null where that is all.
  const Table* table() const { return table_.get(); }
  /// Where in FillItem::to the stored rows come together that a device does not
  /// keep, where it keeps others.
  std::optional<std::size_t> staged_place(Side side) const;
  const RunTable* runs(std::size_t field) const { return runs_[field].get(); }
  /// What the host sees of a run that is kept: all of it, or where the device
  /// keeps it what StoredForm::seen_of() says.
  std::span<const std::byte> seen_run(std::size_t field, SampleId id) const {
    const bool there = field < heads_.size() && heads_[field] != nullptr;
    return (there ? heads_ : runs_)[field]->row(id);
  }
  /// What is kept beside them in the larger form of their fields; null: none.
  LargerRows* larger() const { return larger_.get(); }
  /// Rows that are kept, and are bad samples.
  const DamagedRows& damaged() const { return damaged_; }

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
  explicit TableDataset(TableDatasetOptions options);
  /// Shares what does not depend on where the rows are.
  TableDataset(const TableDataset& of, std::unique_ptr<Table> table,
               Device& device);
  /// Before anything is read.
  void begin(std::shared_ptr<Source> source);
  void bind();
  void check_weights() const;
  void announce_scan(const ScanLimit& limit, const Spill& spill) const;
  /// True where all rows are on one side, whatever they are.
  bool one_side() const { return options_.split.whole(); }
  /// `sides`: of each row, a Side; not looked at where there is one.
  void split(std::int64_t rows, std::span<const std::byte> sides);
  /// Nothing but keys, sides and hashes is needed of the scan.
  bool needs_no_values() const;
  void measure_runs(const RowsById& rows);
  std::size_t finishing_of_all() const {
    return finishing_bytes_ *
           static_cast<std::size_t>(std::max(1, options_.workers));
  }
  void measure_stored_runs();
  /// What runs take, those of so many looked at, in the larger form, too.
  void measure_larger(const Field& field, std::int64_t rows,
                      std::int64_t looked,
                      const std::function<ValueRow(SampleId)>& row_of);
  void keep_larger();
  std::int32_t longest_in_batch(std::size_t field, std::int32_t longest) const;
  /// True where batches are finished on the host, for all their rows.
  bool find_device_fields(const Device& device, Runs runs);
  void plan_tier(std::int64_t rows, const Device& device,
                 const std::optional<ScanMemory>& scan);
  /// What batches are like with the rows where the plan says.
  void use_plan(TierPlan plan, const Device& device);
  bool plans_again(const Error& error, const Device& device);
  void find_lengths();
  void take_keys(const RowsById& rows);
  void pack_by_id(const RowsById& rows, const ShareOut& share_out,
                  StoreWriter* store = nullptr);
  void pack_all(const RowsById& rows, const ShareOut& share_out,
                StoreWriter& store);
  void encode(const RowsById& rows, SampleId first, SampleId end,
              std::byte* out, const ShareOut& share_out, StoreWriter* store);
  void make_room(const RowsById& rows, SampleId first, SampleId end,
                 std::vector<Values>& runs) const;
  /// One field has runs, and no field anything else: they go to a store as they
  /// are encoded, and are not held in memory.
  bool runs_alone() const {
    return layout_.row_bytes == 0 && options_.fields.size() == 1;
  }
  void pack(const RowsById& rows, Device& device, const ShareOut& share_out);
  /// From host memory to the device, in its tier.
  void move_runs(Device& device);
  std::size_t head_bytes() const;
  // In stored_rows.cpp.
  /// For a store that is to be written; none where there shall be none.
  std::optional<std::size_t> disk_free(const HostLimits& host) const;
  /// The rows were taken from the store of an earlier run.
  bool rows_in_store() const { return table_ != nullptr || !runs_.empty(); }
  std::shared_ptr<const Store> pack_to_store(const RowsById& rows,
                                             const ShareOut& share_out);
  /// False where there is no store of an earlier run that can be used.
  bool take_from_store(Device& device);
  bool take_in_turn(FileLock& turn, Device& device);
  void scan_anew(const Error& error);
  std::shared_ptr<const StoreRemaker> remaker() const;
  bool rebuild_store(const Error& error) const;
  std::shared_ptr<const Store> take_rows();  ///< null: as above
  void copy_to_tiers(const std::shared_ptr<const Store>& store, Device& device);
  void take_what_is_known(const std::shared_ptr<const Store>& store);
  void use_rows(const std::shared_ptr<const Store>& store);

  TableDatasetOptions options_;
  std::shared_ptr<Source> source_;
  RowLayout layout_;
  std::shared_ptr<const TableKeys> keys_;
  SideIndex train_{0};
  SideIndex val_{0};
  BoundFields bound_;
  BlockParser::Options parsing_;
  std::shared_ptr<FittedFields> fitted_;  // of the facts
  std::shared_ptr<ScanFacts> scan_;       // the same
  TableStore store_file_;
  std::shared_ptr<const Store> store_;  // that rows are read from
  std::unique_ptr<StoreOfScan> begun_;  // the rows are scanned into it
  std::unique_ptr<Table> table_;
  std::vector<std::shared_ptr<RunTable>> runs_;   // by field
  std::vector<std::shared_ptr<RunTable>> heads_;  // of those on the device
  std::vector<std::size_t> varying_;  // the field of each output that varies
  std::size_t run_bytes_ = 0;         // of all rows, as stored
  std::size_t finishing_bytes_ = 0;   // of a thread, for the largest row
  std::size_t larger_bytes_ = 0;      // of runs that have a larger form, in it
  std::shared_ptr<LargerRows> larger_;
  std::size_t key_bytes_ = 0;  // of all rows, in a store
  // Of each field that has runs, in elements.
  std::vector<std::pair<std::size_t, std::int32_t>> longest_runs_;
  // Of the rows in tier none.
  std::shared_ptr<const std::vector<std::uint64_t>> row_hashes_;
  TierRequest request_;
  std::vector<NamedFile> named_files_;  // that columns name, for the store
  DamagedRows damaged_;
  std::string fingerprint_;
  int plans_left_ = 3;
};

}  // namespace penstock
