#include "penstock/loader/fill.h"

namespace penstock {

Filler::Filler(const Dataset& rows, Device& device, FillMeters& meters,
               bool per_sample)
    : layout_(rows.layout()),
      stream_(device.make_stream()),
      rows_(rows.open_filler(meters, per_sample)),
      tensors_(layout_.tensors.size()) {}

// What is still queued names memory of slots: it must end before they do.
Filler::~Filler() { settle(); }

void Filler::settle() noexcept {
  try {
    stream_->synchronize();
  } catch (...) {
    log_exception(LogLevel::warning, "a loader's stream ended badly");
  }
}

void Filler::fill(Slot& slot, std::int64_t begin, std::int64_t end) {
  auto first = static_cast<std::size_t>(begin);
  auto count = static_cast<std::size_t>(end - begin);
  for (std::size_t t = 0; t < tensors_.size(); ++t)
    tensors_[t] =
        slot.fill_at() + slot.offsets[t] + first * layout_.tensors[t].bytes;
  rows_->fill({.ids = std::span(slot.ids).subspan(first, count),
               .tensors = tensors_,
               .at = slot.plan.at},
              *stream_);
  if (slot.offsets.size() == tensors_.size()) return;
  auto* weights =
      reinterpret_cast<float*>(slot.fill_at() + slot.offsets.back());
  if (!slot.weights.empty()) weights = slot.weights.data();
  for (std::size_t i = first; i < first + count; ++i)
    weights[i] = slot.ids[i] < 0 ? 0.0f : 1.0f;
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
