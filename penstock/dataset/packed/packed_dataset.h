#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "penstock/dataset/packed/packed_bins.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// The samples of a data set in bins: a bin is one sample of the order, so that
/// epochs, ranks, tails and resuming are those of any other data set. Its
/// number is the rank within its side, those of the side val behind those of
/// train. `facts().bins` turns bins into samples.
class PackedDataset final : public Dataset {
 public:
  /// `rows`: outputs of Lengths::bins alone, packed as `packing` says.
  PackedDataset(std::shared_ptr<const Dataset> rows, const Packing& packing,
                std::uint64_t seed);

  /// That of the samples: how they are packed, the fields' recipes say.
  const std::string& fingerprint() const override {
    return rows_->fingerprint();
  }
  void select(Side side, std::span<SampleId> ranks) const override;
  Json key_of(SampleId sample) const override { return rows_->key_of(sample); }
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override {
    return rows_->open_filler(meters, options);
  }
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override {
    return rows_->open_read_ahead(std::move(options));
  }

 private:
  const std::shared_ptr<const Dataset> rows_;
};

/// How the fields of a job want their samples packed; nullopt: not at all.
/// Throws Error(request), code packing.fields, for what cannot be packed beside
/// others, and packing.drawn for rows that are drawn by a column.
std::optional<Packing> packing_of(const RowsRecipe& recipe);

/// `rows` packed as the fields of `options` say, or as they are.
std::shared_ptr<const Dataset> packed(std::shared_ptr<const Dataset> rows,
                                      const TableDatasetOptions& options);

}  // namespace penstock
