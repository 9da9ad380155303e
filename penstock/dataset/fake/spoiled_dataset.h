#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "penstock/dataset/dataset.h"

namespace penstock {

/// Samples that are made when they are asked for: their own number plus 1. Some
/// are bad.
class SpoiledDataset final : public Dataset {
 public:
  SpoiledDataset(std::int64_t rows, std::function<bool(SampleId)> bad)
      : bad_(std::move(bad)) {
    facts_.rows = rows;
    facts_.on_side = {rows, 0};
    facts_.outputs = {{"number", Dtype::int64, {}}};
  }
  const std::string& fingerprint() const override { return fingerprint_; }
  void select(Side, std::span<SampleId>) const override {}
  std::unique_ptr<SlotFiller> open_filler(FillMeters&,
                                          const FillerOptions&) const override {
    return std::make_unique<Filler>(bad_);
  }

 private:
  class Filler final : public SlotFiller {
   public:
    explicit Filler(const std::function<bool(SampleId)>& bad) : bad_(bad) {}
    void fill(const FillItem& item, Stream&, Faults& faults) override {
      for (std::size_t i = 0; i < item.ids.size(); ++i) {
        std::int64_t number = item.ids[i] + 1;
        std::memcpy(item.to[0].row(i), &number, sizeof(number));
        if (bad_(item.ids[i]))
          faults.reject({.row = static_cast<std::int64_t>(i),
                         .place = "field 'number'",
                         .why = "found a rotten number"});
      }
    }
    const std::function<bool(SampleId)>& bad_;
  };

  const std::function<bool(SampleId)> bad_;
  std::string fingerprint_ = "spoiled";
};

}  // namespace penstock
