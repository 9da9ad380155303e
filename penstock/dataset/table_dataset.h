#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/parsed_rows.h"
#include "penstock/dataset/rows.h"
#include "penstock/device/device.h"
#include "penstock/exec/exec.h"
#include "penstock/monitor/monitor.h"
#include "penstock/sampling/sampling.h"
#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// What belongs to a data set and how it is prepared.
struct TableDatasetOptions {
  SourceSpec source;
  std::vector<Field> fields;
  Split split;
  std::string cache = "auto";  ///< auto, device, ram or none
  int workers = 1;             ///< threads that parse; 0: on the caller's
  /// What the loaders' rings will take where there are so many rows; empty:
  /// nothing.
  std::function<std::size_t(std::int64_t rows)> ring_bytes;
  /// Statistics of an earlier run, to be applied instead of fitting anew.
  std::optional<Json> statistics;
  /// Called with the tier plan before the memory is allocated. May be empty.
  std::function<void(const TierPlan&)> planned;
};

/// What a source must give for these options, after the key.
std::vector<ColumnRequest> requests_of(const TableDatasetOptions& options);

/// A data set after its one pass over a source: keys, statistics, sides, and
/// the packed rows in their tier.
class TableDataset final : public Dataset {
 public:
  /// Reads the table once. Throws what the source and the transforms throw,
  /// and Error(source) for two rows with one key or no row at all.
  static std::shared_ptr<const TableDataset> prepare(
      const TableDatasetOptions& options, Device& device);
  /// The same from a source that was opened with `requests_of(options)`.
  static std::shared_ptr<const TableDataset> prepare(
      const TableDatasetOptions& options, std::unique_ptr<Source> source,
      Device& device);
  ~TableDataset() override;

  std::int64_t rows() const override { return keys_.size(); }
  std::int64_t rows_on(Side side) const override {
    return this->side(side).size();
  }
  void select(Side side, std::span<SampleId> ranks) const override;
  const RowLayout& layout() const override { return layout_; }
  const TierPlan& plan() const override { return plan_; }
  /// SHA-256 over keys and prepared rows in order of id, in hex.
  const std::string& fingerprint() const override { return fingerprint_; }
  std::unique_ptr<RowFiller> open_filler(FillMeters& meters,
                                         bool per_sample) const override;

  const KeyList& keys() const { return keys_; }  ///< by sample id
  const SideIndex& side(Side side) const {
    return side == Side::train ? train_ : val_;
  }
  const std::vector<Field>& fields() const { return options_.fields; }
  /// What was found over the train rows, by the fields' names.
  Json statistics() const;
  /// Those of one field. Throws Error(internal) where there is no such field.
  const Json& statistics_of(const std::string& field) const;
  RowEncoder encoder() const;
  /// The packed rows; null in tier `none`.
  const Table* table() const { return table_.get(); }
  /// Rows with a list shorter than `min`.
  std::int64_t too_short() const { return too_short_; }
  /// Rows that `source.on_bad: "skip"` left out, by ascending key.
  const std::vector<BadRow>& quarantine() const { return bad_; }
  std::int64_t left_out() const {
    return too_short_ + static_cast<std::int64_t>(bad_.size());
  }
  /// What the pass cost, stage by stage.
  const std::vector<StageNumbers>& stages() const { return stages_; }

  /// Reads rows anew (tier `none`): one per thread.
  class RowReader {
   public:
    explicit RowReader(const TableDataset& dataset);
    ~RowReader();
    /// One statement; `rows` then holds these ids' rows, in order. Throws
    /// Error(source) when a row is gone or is no longer what it was.
    void read(std::span<const SampleId> ids, ParsedBlock& rows);
    /// Time and count of reading; and of parsing and checking.
    StageMeter* read_meter = nullptr;
    StageMeter* prepare_meter = nullptr;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  explicit TableDataset(TableDatasetOptions options);
  void bind();
  void split(const RowsById& rows);
  void find_statistics(const ParseNotes& notes, const RowsById& rows,
                       const ShareOut& share_out);
  void plan_tier(std::int64_t rows, const Device& device);
  void pack(const RowsById& rows, Device& device, const ShareOut& share_out);

  TableDatasetOptions options_;
  std::unique_ptr<Source> source_;
  RowLayout layout_;
  KeyList keys_;
  SideIndex train_{0};
  SideIndex val_{0};
  BoundFields bound_;
  BlockParser::Options parsing_;
  std::vector<Json> statistics_;  // by field
  TierPlan plan_;
  std::unique_ptr<Table> table_;
  std::vector<std::uint64_t> row_hashes_;  // tier none
  std::int64_t too_short_ = 0;
  std::vector<BadRow> bad_;
  std::string fingerprint_;
  std::vector<StageNumbers> stages_;
};

}  // namespace penstock
