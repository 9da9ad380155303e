#include "penstock/loader/fill.h"

#include <cstring>

namespace penstock {

Filler::Filler(const Dataset& dataset, Device& device, Meters& meters,
               bool per_sample)
    : dataset_(dataset),
      meters_(meters),
      per_sample_(per_sample),
      stream_(device.make_stream()),
      row_(dataset.layout().row_bytes) {
  for (const TensorSpec& tensor : dataset.layout().tensors)
    fields_.push_back({.table = dataset.table() == nullptr
                                    ? nullptr
                                    : dataset.table()->data() + tensor.offset,
                       .row_stride = dataset.layout().row_bytes,
                       .bytes = tensor.bytes});
  if (dataset.table() != nullptr) return;
  reader_ = std::make_unique<Dataset::RowReader>(dataset);
  reader_->read_meter = &meters.read;
  reader_->prepare_meter = &meters.prepare;
}

// What is still queued names memory of slots: it must end before they do.
Filler::~Filler() { settle(); }

void Filler::settle() noexcept {
  try {
    stream_->synchronize();
  } catch (const std::exception& error) {
    log(LogLevel::warning,
        "a loader's stream ended badly: " + std::string(error.what()));
  }
}

void Filler::fill(Slot& slot, std::int64_t begin, std::int64_t end) {
  if (dataset_.table() != nullptr)
    gather(slot, begin, end);
  else
    read(slot, begin, end);
  if (slot.offsets.size() == fields_.size()) return;
  auto* weights =
      reinterpret_cast<float*>(slot.fill_at() + slot.offsets.back());
  if (!slot.weights.empty()) weights = slot.weights.data();
  for (std::int64_t i = begin; i < end; ++i)
    weights[i] = slot.ids[static_cast<std::size_t>(i)] < 0 ? 0.0f : 1.0f;
}

void Filler::gather(Slot& slot, std::int64_t begin, std::int64_t end) {
  BusyScope busy(meters_.gather);
  auto first = static_cast<std::size_t>(begin);
  for (std::size_t t = 0; t < fields_.size(); ++t)
    fields_[t].out =
        slot.fill_at() + slot.offsets[t] + first * fields_[t].bytes;
  Gather gather{.fields = fields_,
                .rows = std::span(slot.ids).subspan(
                    first, static_cast<std::size_t>(end - begin))};
  if (dataset_.plan().tier == Tier::device)
    stream_->gather(gather);
  else
    gather_on_host(gather);
  meters_.gather.add_items(
      end - begin,
      (end - begin) * static_cast<std::int64_t>(dataset_.layout().row_bytes));
}

void Filler::read(Slot& slot, std::int64_t begin, std::int64_t end) {
  present_.clear();
  for (std::int64_t i = begin; i < end; ++i)
    if (SampleId id = slot.ids[static_cast<std::size_t>(i)]; id >= 0)
      present_.push_back(id);
  std::size_t per_call = per_sample_ ? 1 : present_.size();
  std::int64_t row = begin;
  for (std::size_t at = 0; at < present_.size(); at += per_call) {
    std::span<const SampleId> ids = std::span(present_).subspan(at, per_call);
    reader_->read(ids, raw_);
    BusyScope busy(meters_.pack);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      pack_row(dataset_.fields(), dataset_.layout(), dataset_.fitted(),
               raw_.row(static_cast<std::int64_t>(i)), row_.data(),
               [&] { return "row " + dataset_.keys().shown(ids[i]); });
      write(slot, row++, row_.data());
    }
    meters_.pack.add_items(std::ssize(ids), std::ssize(ids) * std::ssize(row_));
  }
  while (row < end) write(slot, row++, nullptr);  // padding stands at the end
}

void Filler::write(Slot& slot, std::int64_t row, const std::byte* packed) {
  for (std::size_t t = 0; t < fields_.size(); ++t) {
    std::byte* out = slot.fill_at() + slot.offsets[t] +
                     static_cast<std::size_t>(row) * fields_[t].bytes;
    if (packed != nullptr)
      std::memcpy(out, packed + dataset_.layout().tensors[t].offset,
                  fields_[t].bytes);
    else
      std::memset(out, 0, fields_[t].bytes);
  }
}

void Filler::send(Slot& slot) {
  if (slot.host.data() != nullptr)
    stream_->copy(slot.target.data(), slot.host.data(), slot.host.size());
  else if (!slot.weights.empty())
    stream_->copy(slot.target.data() + slot.offsets.back(),
                  reinterpret_cast<const std::byte*>(slot.weights.data()),
                  slot.weights.size() * sizeof(float));
  slot.ready = stream_->record_untimed();
}

}  // namespace penstock
