#include "penstock/dataset/arrays/gather_filler.h"

#include <utility>

namespace penstock {
namespace {

class GatherFiller final : public SlotFiller {
 public:
  GatherFiller(std::vector<GatherField> fields,
               std::vector<std::size_t> outputs, Tier tier, StageMeter& meter)
      : fields_(std::move(fields)),
        outputs_(std::move(outputs)),
        on_device_(gathered_on_device(tier)),
        meter_(meter) {
    for (const GatherField& field : fields_) row_bytes_ += field.bytes;
  }

  void fill(const FillItem& item, Stream& stream, Faults&) override {
    BusyScope busy(meter_);
    for (std::size_t f = 0; f < fields_.size(); ++f)
      fields_[f].out = item.to[outputs_[f]].data;
    Gather gather{.fields = fields_, .rows = item.ids};
    if (on_device_)
      stream.run(gather);
    else
      run_on_host(gather);
    meter_.add_items(
        std::ssize(item.ids),
        std::ssize(item.ids) * static_cast<std::int64_t>(row_bytes_));
  }

 private:
  std::vector<GatherField> fields_;
  const std::vector<std::size_t> outputs_;  // by field
  const bool on_device_;
  StageMeter& meter_;
  std::size_t row_bytes_ = 0;
};

}  // namespace

std::unique_ptr<SlotFiller> make_gather_filler(std::vector<GatherField> fields,
                                               std::vector<std::size_t> outputs,
                                               Tier tier, StageMeter& meter) {
  return std::make_unique<GatherFiller>(std::move(fields), std::move(outputs),
                                        tier, meter);
}

}  // namespace penstock
