#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "penstock/loader/loader.h"

namespace penstock {

/// Other rows with trouble made on purpose, for the tests of this room. Each
/// hook may be empty; it is called on any thread before the real work, and may
/// throw.
class TroubledRows : public Dataset {
 public:
  struct Hooks {
    std::function<void(int opened)> open_filler;  ///< counts from 1
    std::function<void(int planned)> select;      ///< counts from 1
    std::function<void(Position at)> fill;
  };

  TroubledRows(std::shared_ptr<const Dataset> rows, Hooks hooks)
      : rows_(std::move(rows)), hooks_(std::move(hooks)) {}

  std::int64_t rows() const override { return rows_->rows(); }
  std::int64_t rows_on(Side side) const override {
    return rows_->rows_on(side);
  }
  void select(Side side, std::span<SampleId> ranks) const override {
    if (hooks_.select) hooks_.select(++planned_);
    rows_->select(side, ranks);
  }
  const RowLayout& layout() const override { return rows_->layout(); }
  const TierPlan& plan() const override { return rows_->plan(); }
  const std::string& fingerprint() const override {
    return rows_->fingerprint();
  }
  std::unique_ptr<RowFiller> open_filler(FillMeters& meters,
                                         bool per_sample) const override {
    if (hooks_.open_filler) hooks_.open_filler(++opened_);
    return std::make_unique<Filler>(rows_->open_filler(meters, per_sample),
                                    hooks_);
  }

 private:
  class Filler final : public RowFiller {
   public:
    Filler(std::unique_ptr<RowFiller> rows, const Hooks& hooks)
        : rows_(std::move(rows)), hooks_(hooks) {}
    void fill(const RowTarget& target, Stream& stream) override {
      if (hooks_.fill) hooks_.fill(target.at);
      rows_->fill(target, stream);
    }

   private:
    std::unique_ptr<RowFiller> rows_;
    const Hooks& hooks_;
  };

  const std::shared_ptr<const Dataset> rows_;
  const Hooks hooks_;
  mutable std::atomic<int> opened_{0}, planned_{0};
};

}  // namespace penstock
