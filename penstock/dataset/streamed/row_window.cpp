#include "penstock/dataset/streamed/row_window.h"

#include <algorithm>
#include <utility>

namespace penstock {

std::size_t PreparedBlock::bytes() const {
  std::size_t sum = rows.size() + keys.memory();
  for (const Values& values : runs)
    sum += values.bytes.size() + values.ends.size() * sizeof(values.ends[0]);
  return sum;
}

RowWindow::RowWindow(std::shared_ptr<const FittedFields> fields,
                     RowLayout layout,
                     std::vector<std::shared_ptr<const PreparedBlock>> blocks,
                     std::vector<Place> rows, std::int64_t first)
    : layout_(std::move(layout)),
      blocks_(std::move(blocks)),
      rows_(std::move(rows)),
      first_(first),
      fingerprint_("rows from " + std::to_string(first) + " on") {
  const std::int64_t count = std::ssize(rows_);
  facts_.rows = count;
  facts_.on_side = {count, count};
  facts_.outputs = outputs_of(fields->fields);
  facts_.fitted = std::move(fields);
  facts_.plan.tier = Tier::ram;
  facts_.plan.places = {{.tier = Tier::ram, .rows = count}};
  find_lengths();
}

void RowWindow::find_lengths() {
  const std::vector<Field>& fields = facts_.fitted->fields;
  for (std::size_t f = 0; f < fields.size(); ++f)
    for (const Output& output : fields[f].kind->facts().outputs) {
      if (!output.own_lengths()) continue;
      varying_.push_back(f);
      facts_.longest.push_back(0);
    }
  for (std::size_t v = 0; v < varying_.size(); ++v) {
    const std::size_t element =
        fields[varying_[v]].kind->facts().stored.element_bytes;
    for (SampleId id = 0; id < facts_.rows; ++id)
      facts_.longest[v] = std::max(
          facts_.longest[v],
          static_cast<std::int32_t>(run(varying_[v], id).size() / element));
  }
}

Json RowWindow::key_of(SampleId sample) const {
  return block_of(sample).keys.json(
      rows_[static_cast<std::size_t>(sample)].row);
}

void RowWindow::append_key(SampleId sample, KeyList& to) const {
  to.append(block_of(sample).keys, rows_[static_cast<std::size_t>(sample)].row);
}

const std::byte* RowWindow::row(SampleId sample) const {
  return block_of(sample).rows.data() +
         rows_[static_cast<std::size_t>(sample)].row * layout_.row_bytes;
}

std::span<const std::byte> RowWindow::run(std::size_t field,
                                          SampleId sample) const {
  const PreparedBlock& block = block_of(sample);
  return block.runs[field].row(
      block.kept[rows_[static_cast<std::size_t>(sample)].row]);
}

void RowWindow::lengths(std::size_t varying,
                        std::span<const SampleRange> ranges,
                        std::span<std::int32_t> out) const {
  const std::size_t field = varying_[varying];
  const std::size_t element =
      facts_.fitted->fields[field].kind->facts().stored.element_bytes;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const SampleId id = ranges[i].sample;
    out[i] = id < 0
                 ? 0
                 : elements_in(ranges[i], static_cast<std::int32_t>(
                                              run(field, id).size() / element));
  }
}

class WindowFiller final : public SlotFiller {
 public:
  WindowFiller(const RowWindow& window, FillMeters& meters,
               const FillerOptions& options)
      : window_(window),
        meter_(meters.pack),
        finisher_(window.facts().fitted->fields, window.layout_, window.facts(),
                  options) {}

  void fill(const FillItem& item, Stream&, Faults& faults) override {
    BusyScope busy(meter_);
    stored_.clear();
    for (SampleId id : item.ids)
      stored_.push_back(id < 0 ? nullptr : window_.row(id));
    finisher_.copy(item, stored_);
    if (!finisher_.idle())
      finisher_.finish(
          item, stored_,
          [&](std::size_t field, std::size_t i) {
            return window_.run(field, item.ids[i]);
          },
          faults);
    meter_.add_items(std::ssize(item.ids), 0);
  }

 private:
  const RowWindow& window_;
  StageMeter& meter_;
  RowFinisher finisher_;
  std::vector<const std::byte*> stored_;
};

std::unique_ptr<SlotFiller> RowWindow::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  return std::make_unique<WindowFiller>(*this, meters, options);
}

}  // namespace penstock
