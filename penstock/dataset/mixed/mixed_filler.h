#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "penstock/dataset/mixed/mixed_dataset.h"

namespace penstock {

/// Fills rows of several data sets: those of each are filled side by side by
/// its own filler, into memory of this one, and copied from there to their
/// places in the batch. Rows that are all of one data set are filled where they
/// belong.
class MixedFiller final : public SlotFiller {
 public:
  /// `dataset` and `meters` outlive it.
  MixedFiller(const MixedDataset& dataset, FillMeters& meters,
              const FillerOptions& options);

  void fill(const FillItem& item, Stream& stream, Faults& faults) override;

 private:
  /// What one data set has of an item.
  struct Part {
    std::unique_ptr<SlotFiller> filler;
    std::vector<std::size_t> rows;  ///< of the item
    std::vector<SampleId> ids;
    std::vector<SampleRange> ranges;
    std::vector<std::int64_t> occurrences;
  };
  struct Varying {
    std::vector<std::int64_t> starts;
    std::vector<std::int32_t> lengths;
  };

  void share_out(const FillItem& item);
  FillItem item_of(const FillItem& item, std::size_t source);
  void fill_in_place(const FillItem& item, std::size_t source, Stream& stream,
                     Faults& faults);
  void fill_aside(const FillItem& item, std::size_t source, Stream& stream,
                  Faults& faults);
  void lay_out(const FillItem& item, const Part& part);
  void copy(const FillItem& item, const Part& part) const;
  void clear_padding(const FillItem& item) const;
  void write_sources(const FillItem& item) const;

  const MixedDataset& dataset_;
  std::vector<Part> parts_;
  std::vector<std::byte> memory_;    // of the rows of one part
  std::vector<TensorPlace> places_;  // of its tensors there
  std::vector<Varying> varying_;     // by output
  Faults faults_;
};

}  // namespace penstock
