#include "penstock/dataset/gather_filler.h"

#include <utility>

namespace penstock {
namespace {

class GatherFiller final : public RowFiller {
 public:
  GatherFiller(std::vector<GatherField> fields, Tier tier, StageMeter& meter)
      : fields_(std::move(fields)),
        on_device_(tier == Tier::device),
        meter_(meter) {
    for (const GatherField& field : fields_) row_bytes_ += field.bytes;
  }

  void fill(const RowTarget& target, Stream& stream) override {
    BusyScope busy(meter_);
    for (std::size_t t = 0; t < fields_.size(); ++t)
      fields_[t].out = target.tensors[t];
    Gather gather{.fields = fields_, .rows = target.ids};
    if (on_device_)
      stream.gather(gather);
    else
      gather_on_host(gather);
    meter_.add_items(
        std::ssize(target.ids),
        std::ssize(target.ids) * static_cast<std::int64_t>(row_bytes_));
  }

 private:
  std::vector<GatherField> fields_;
  const bool on_device_;
  StageMeter& meter_;
  std::size_t row_bytes_ = 0;
};

}  // namespace

std::unique_ptr<RowFiller> make_gather_filler(std::vector<GatherField> fields,
                                              Tier tier, StageMeter& meter) {
  return std::make_unique<GatherFiller>(std::move(fields), tier, meter);
}

}  // namespace penstock
