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
      : rows_(std::move(rows)), hooks_(std::move(hooks)) {
    facts_ = rows_->facts();
  }

  void select(Side side, std::span<SampleId> ranks) const override {
    if (hooks_.select) hooks_.select(++planned_);
    rows_->select(side, ranks);
  }
  const std::string& fingerprint() const override {
    return rows_->fingerprint();
  }
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override {
    if (hooks_.open_filler) hooks_.open_filler(++opened_);
    return std::make_unique<Filler>(rows_->open_filler(meters, options),
                                    hooks_);
  }
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override {
    return rows_->open_read_ahead(std::move(options));
  }

 private:
  class Filler final : public SlotFiller {
   public:
    Filler(std::unique_ptr<SlotFiller> rows, const Hooks& hooks)
        : rows_(std::move(rows)), hooks_(hooks) {}
    void fill(const FillItem& item, Stream& stream, Faults& faults) override {
      if (hooks_.fill) hooks_.fill(item.at);
      rows_->fill(item, stream, faults);
    }
    void queue(const FillItem& batch, std::byte* scratch,
               Stream& stream) override {
      rows_->queue(batch, scratch, stream);
    }

   private:
    std::unique_ptr<SlotFiller> rows_;
    const Hooks& hooks_;
  };

  const std::shared_ptr<const Dataset> rows_;
  const Hooks hooks_;
  mutable std::atomic<int> opened_{0}, planned_{0};
};

}  // namespace penstock
