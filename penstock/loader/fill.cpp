#include "penstock/loader/fill.h"

#include <cstring>
#include <map>

#include "penstock/loader/ring_bytes.h"

// A batch is filled in parts, whole rows of it, by any threads; each thread has
// a filler and a stream of its own. A part writes nothing but its own ranges of
// each tensor, so no lock is needed: the values first, then what depends on the
// plan alone (lengths, padding, weights), and last what stands in the place of
// bad samples. What the whole batch needs (batch operations, what a device
// finishes) is done by the thread that fills its last part: on the host before
// the copy, on the device behind it, in an order that events give.
//
// `ids` and `ranges` of a slot change only where a substitute takes a bad
// sample's place, within the part of the thread that writes it.

namespace penstock {

using What = BatchTensor::What;

bool device_finishes(const Dataset& dataset, Side side, const Device& device) {
  return !dataset.facts().device_fields_of(side).empty() ||
         (gathered_on_device(dataset.plan().tier) &&
          device.memory_kind() != MemoryKind::cpu);
}

BatchFiller::BatchFiller(const Dataset& dataset,
                         const BatchOperations& operations,
                         const LoaderOptions& options, Device& device,
                         FillMeters& meters)
    : dataset_(dataset),
      operations_(operations),
      tensors_(operations.tensors()),
      options_(options),
      stream_(device.make_stream()),
      filler_(dataset.open_filler(meters, {.side = options.side,
                                           .seed = options.seed,
                                           .per_sample = options.per_sample})),
      device_fields_(dataset.facts().device_fields_of(options.side)),
      queues_(device_finishes(dataset, options.side, device)),
      meter_(meters.on_device) {
  const StreamBytes held = stream_bytes(dataset.facts(), options.side);
  held_there_.change_to(held.device);
  held_pinned_.change_to(held.pinned);
}

// Queued work uses the memory of slots: it must end before they do.
BatchFiller::~BatchFiller() { settle(); }

void BatchFiller::settle() noexcept {
  try {
    stream_->synchronize();
  } catch (...) {
    log_exception(LogLevel::warning, "a loader's stream failed");
  }
}

/// The places of a part, on the host or on the device; true where lengths
/// differ.
bool BatchFiller::find_places(const Slot& slot, const Part& part,
                              bool on_device,
                              std::vector<TensorPlace>& places) const {
  places.clear();
  bool varies = false;
  std::size_t count = part.end_range - part.first_range;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const BatchTensor& tensor = tensors_[t];
    TensorPlace place{
        .data = on_device ? slot.tensors[t].view.data : slot.fill[t],
        .bytes = tensor.bytes};
    if (tensor.what == What::rows) {
      if (place.data != nullptr) place.data += part.first_row * tensor.bytes;
    } else if (tensor.what == What::padded || tensor.what == What::packed) {
      const BatchLayout::Varying& of = slot.layout.varying[tensor.varying];
      place.starts = std::span(of.starts).subspan(part.first_range, count);
      place.lengths = std::span(of.lengths).subspan(part.first_range, count);
      varies = true;
    } else {
      continue;
    }
    places.push_back(place);
  }
  add_staged(slot, part, on_device, places);
  return varies;
}

FillItem BatchFiller::item_of(const Slot& slot, const Part& part,
                              bool on_device) {
  const bool varies = find_places(slot, part, on_device, places_);
  const std::size_t count = part.end_range - part.first_range;
  FillItem item{.ids = std::span(slot.ids).subspan(part.first_range, count),
                .to = places_,
                .at = slot.plan.at};
  if (varies)
    item.ranges = std::span(slot.plan.ranges).subspan(part.first_range, count);
  if (!slot.plan.occurrences.empty())
    item.occurrences =
        std::span(slot.plan.occurrences).subspan(part.first_range, count);
  return item;
}

/// The places of stored rows that are copied for the device.
void BatchFiller::add_staged(const Slot& slot, const Part& part, bool on_device,
                             std::vector<TensorPlace>& places) const {
  std::size_t count = part.end_range - part.first_range;
  std::byte* base = on_device ? slot.target.data() : slot.host.data();
  for (std::size_t f = 0; f < device_fields_.size(); ++f) {
    const DeviceField& field = device_fields_[f];
    const BatchLayout::Staged& staged = slot.layout.staged[f];
    TensorPlace rows{.bytes = field.row_bytes},
        runs{.bytes = field.element_bytes};
    if (field.row_bytes > 0)
      rows.data = base + staged.rows + part.first_range * field.row_bytes;
    if (field.element_bytes > 0) {
      runs.data = base + staged.runs;
      runs.starts =
          std::span(staged.lengths.starts).subspan(part.first_range, count);
      runs.lengths =
          std::span(staged.lengths.lengths).subspan(part.first_range, count);
    }
    places.push_back(rows);
    places.push_back(runs);
  }
}

namespace {

/// Of the sample in the place of a bad one: see StoredRow::occurrence.
std::int64_t occurrence_of_substitute(const Plan& plan, SampleId bad,
                                      std::size_t range) {
  return -1 - (plan.occurrences.empty() ? bad : plan.occurrences[range]);
}

/// A bad sample of a slot, and those that are drawn for it. They depend only on
/// the bad sample, so that they are the same on any number of ranks, threads
/// and restarts. A substitute may also be in the batch itself, or replace
/// several bad ones: its occurrence tells these apart.
class BadSample {
 public:
  BadSample(const Dataset& dataset, const LoaderOptions& options,
            const Slot& slot, std::size_t range)
      : bad_(slot.ids[range]),
        random_(options.seed, static_cast<std::uint64_t>(slot.plan.at.epoch),
                static_cast<std::uint64_t>(bad_),
                kSubstitute + time_of(slot.plan, range)),
        rows_(static_cast<std::uint64_t>(dataset.rows_on(options.side))),
        occurrence_(occurrence_of_substitute(slot.plan, bad_, range)) {}

  SampleId bad() const { return bad_; }
  std::int64_t occurrence() const { return occurrence_; }
  /// The next one. Throws Error(transform) after too many; `why`: what was
  /// found in the last one.
  SampleId other(const Dataset& dataset, Side side, const std::string& why) {
    if (drawn_++ == kAttempts) refuse(why);
    auto other = static_cast<SampleId>(random_.below(rows_));
    dataset.select(side, std::span(&other, 1));
    return other;
  }

 private:
  static constexpr std::uint64_t kSubstitute = 0x73756273;  // "subs"
  static constexpr int kAttempts = 100;

  static std::uint64_t time_of(const Plan& plan, std::size_t range) {
    return plan.occurrences.empty()
               ? 0
               : static_cast<std::uint64_t>(plan.occurrences[range]);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::transform,
                {.code = "data.too_many_bad",
                 .what = "no sample can be substituted for a bad one",
                 .where = "sample " + std::to_string(bad_),
                 .why = std::to_string(kAttempts) +
                        " other samples are bad too: " + why,
                 .next = "check the data: most of it cannot be used"});
  }

  const SampleId bad_;
  Random random_;
  const std::uint64_t rows_;
  const std::int64_t occurrence_;
  int drawn_ = 0;
};

/// Substitutes that are drawn while a whole batch is filled.
class Replacements final : public Substitutes {
 public:
  Replacements(const Dataset& dataset, const LoaderOptions& options, Slot& slot,
               std::size_t first_range)
      : dataset_(dataset),
        options_(options),
        slot_(slot),
        first_range_(first_range) {}

  std::int64_t next(std::size_t range, const RowFault& fault) override {
    range += first_range_;
    auto bad = bad_.try_emplace(range, dataset_, options_, slot_, range).first;
    slot_.ids[range] = slot_.plan.ranges[range].sample =
        bad->second.other(dataset_, options_.side, fault.why);
    return bad->second.occurrence();
  }
  bool replaced(std::size_t range) const override {
    return bad_.contains(range + first_range_);
  }
  SampleId bad_at(std::size_t range) const { return bad_.at(range).bad(); }

 private:
  const Dataset& dataset_;
  const LoaderOptions& options_;
  Slot& slot_;
  const std::size_t first_range_;
  std::map<std::size_t, BadSample> bad_;  // by range
};

}  // namespace

std::vector<RejectedSample> BatchFiller::fill(Slot& slot, std::int64_t begin,
                                              std::int64_t end,
                                              ItemRead* read) {
  Part part{static_cast<std::size_t>(begin), static_cast<std::size_t>(end),
            slot.first_range(begin), slot.first_range(end)};
  faults_.rows.clear();
  FillItem item = item_of(slot, part);
  item.read = read;
  Replacements replacements(dataset_, options_, slot, part.first_range);
  if (dataset_.facts().whole_batches && options_.on_bad == OnBad::substitute)
    item.substitutes = &replacements;
  filler_->fill(item, *stream_, faults_);
  write_lengths(slot, part);
  write_weights(slot, part);
  std::vector<RejectedSample> rejected;
  for (RowFault& fault : std::exchange(faults_.rows, {})) {
    std::size_t range = part.first_range + static_cast<std::size_t>(fault.row);
    const bool replaced = replacements.replaced(range - part.first_range);
    RejectedSample bad{
        .sample = replaced ? replacements.bad_at(range) : slot.ids[range],
        .row = static_cast<std::int64_t>(range),
        .place = std::move(fault.place),
        .why = std::move(fault.why)};
    if (options_.on_bad == OnBad::stop) refuse_bad_sample(bad, slot.plan.at);
    if (replaced)
      bad.substitute = slot.ids[range];
    else if (options_.on_bad == OnBad::substitute)
      bad.substitute = substitute(slot, range);
    else
      mask(slot, range);
    rejected.push_back(std::move(bad));
  }
  return rejected;
}

// For the rows of this part only; the first part writes the 0 that begins the
// offsets.
void BatchFiller::write_lengths(const Slot& slot, const Part& part) const {
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const BatchTensor& tensor = tensors_[t];
    auto* out = reinterpret_cast<std::int32_t*>(slot.fill[t]);
    if (tensor.what == What::padded)
      clear_padding(slot, tensor, slot.fill[t], part);
    if (tensor.what == What::offsets) {
      const BatchLayout::Varying& of = slot.layout.varying[tensor.varying];
      if (part.first_range == 0) out[0] = 0;
      for (std::size_t r = part.first_range; r < part.end_range; ++r)
        out[r + 1] = static_cast<std::int32_t>(of.starts[r] + of.lengths[r]);
    }
    if (tensor.what != What::lengths) continue;
    const BatchLayout::Varying& of = slot.layout.varying[tensor.varying];
    std::size_t range = part.first_range;
    for (std::size_t row = part.first_row; row < part.end_row; ++row) {
      out[row] = 0;
      for (; range < static_cast<std::size_t>(slot.plan.bin_ends[row]); ++range)
        out[row] += of.lengths[range];
    }
  }
}

namespace {

/// Writes `count` elements from `first` on. What is not 0 is an integer.
void write_padding(const BatchTensor& tensor, std::byte* data,
                   std::int64_t first, std::int64_t count) {
  data += static_cast<std::size_t>(first) * tensor.bytes;
  const auto times = static_cast<std::size_t>(count);
  if (tensor.padding == 0) {
    std::memset(data, 0, times * tensor.bytes);
    return;
  }
  for (std::size_t i = 0; i < times; ++i)
    std::memcpy(data + i * tensor.bytes, &tensor.padding, tensor.bytes);
}

}  // namespace

/// What follows the last element of each row.
void BatchFiller::clear_padding(const Slot& slot, const BatchTensor& tensor,
                                std::byte* data, const Part& part) const {
  const BatchLayout::Varying& of = slot.layout.varying[tensor.varying];
  std::size_t range = part.first_range;
  for (std::size_t row = part.first_row; row < part.end_row; ++row) {
    std::int64_t used = 0;
    for (; range < static_cast<std::size_t>(slot.plan.bin_ends[row]); ++range)
      used += of.lengths[range];
    std::int64_t first = static_cast<std::int64_t>(row) * of.longest + used;
    if (of.longest > used)
      write_padding(tensor, data, first, of.longest - used);
  }
}

void BatchFiller::write_weights(const Slot& slot, const Part& part) const {
  if (tensors_.empty() || tensors_.back().what != What::weight) return;
  auto* weights = reinterpret_cast<float*>(slot.fill.back());
  std::size_t range = part.first_range;
  for (std::size_t row = part.first_row; row < part.end_row; ++row) {
    weights[row] =
        range < slot.ids.size() && slot.ids[range] >= 0 ? 1.0F : 0.0F;
    range = static_cast<std::size_t>(slot.plan.bin_ends[row]);
  }
}

namespace {

/// Behind what was gathered there.
void write_zeros(std::byte* there, std::size_t bytes, Stream& stream) {
  const GatherField zeros{.row_stride = bytes, .bytes = bytes, .out = there};
  const std::int64_t none = -1;
  stream.run(
      Gather{.fields = std::span(&zeros, 1), .rows = std::span(&none, 1)});
}

}  // namespace

/// Writes what stands for padding in the place of a range. A row has weight 0
/// where it is all that is in it.
void BatchFiller::mask(const Slot& slot, std::size_t range) const {
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const BatchTensor& tensor = tensors_[t];
    std::byte* data = slot.fill[t];
    if (data == nullptr) continue;  // the device sees that it is masked
    if (tensor.what == What::rows || tensor.what == What::weight) {
      if (slot.ids.size() != slot.plan.bin_ends.size()) continue;  // a bin
      const TensorView& view = slot.tensors[t].view;
      std::byte* row = data + range * tensor.bytes;
      if (data == view.data && view.memory != MemoryKind::cpu)
        write_zeros(row, tensor.bytes, *stream_);
      else
        std::memset(row, 0, tensor.bytes);
    } else if (tensor.what == What::padded || tensor.what == What::packed) {
      const BatchLayout::Varying& of = slot.layout.varying[tensor.varying];
      write_padding(tensor, data, of.starts[range], of.lengths[range]);
    }
  }
}

SampleId BatchFiller::substitute(Slot& slot, std::size_t range) {
  BadSample bad(dataset_, options_, slot, range);
  const Part part{range, range + 1, range, range + 1};
  const std::int64_t occurrence = bad.occurrence();
  std::string why;
  for (;;) {
    slot.ids[range] = slot.plan.ranges[range].sample =
        bad.other(dataset_, options_.side, why);
    faults_.rows.clear();
    FillItem item = item_of(slot, part);
    item.occurrences = std::span(&occurrence, 1);
    filler_->fill(item, *stream_, faults_);
    if (faults_.rows.empty()) return slot.ids[range];
    why = faults_.rows.front().why;
  }
}

void BatchFiller::operate(Slot& slot) {
  if (!operations_.empty() && !queues_) operations_.apply(slot, scratch_);
  // Where nothing is copied this thread continues with the slot, in this
  // stream.
  if (queues_ && slot.host.data() != nullptr)
    slot.filled = stream_->record_untimed();
}

void BatchFiller::finish(Slot& slot) {
  if (!queues_) {
    slot.ready = slot.copied;
    return;
  }
  stream_->wait(slot.filled);
  stream_->wait(slot.copied);
  queue(slot);
  slot.ready = stream_->record_untimed();
}

void BatchFiller::queue(const Slot& slot) {
  if (!device_fields_.empty()) {
    BusyScope busy(meter_);
    meter_.add_items(std::ssize(slot.ids), 0);
    const Part whole{0, slot.plan.bin_ends.size(), 0, slot.ids.size()};
    FillItem batch = item_of(slot, whole, true);
    find_places(slot, whole, false, host_places_);
    batch.on_host = host_places_;
    const std::vector<SampleId> live = slot.live_ids();
    batch.ids = live;
    std::vector<std::int64_t> occurrences = slot.plan.occurrences;
    for (const RejectedSample& bad : slot.rejected) {
      if (bad.substitute < 0) continue;
      auto range = static_cast<std::size_t>(bad.row);
      occurrences.resize(live.size());
      occurrences[range] =
          occurrence_of_substitute(slot.plan, bad.sample, range);
    }
    batch.occurrences = occurrences;
    filler_->queue(batch, slot.scratch(), *stream_);
  }
  if (!operations_.empty()) operations_.queue(slot, *stream_);
}

void refuse_bad_sample(const RejectedSample& bad, Position at) {
  throw Error(
      ErrorKind::transform,
      {.code = "data.bad_sample",
       .what = "a sample cannot be used",
       .where = "sample " + std::to_string(bad.sample) + ", " + bad.place +
                ", epoch " + std::to_string(at.epoch) + ", step " +
                std::to_string(at.step),
       .why = bad.why,
       .next = "correct the sample, or set \"loader.on_bad\": \"substitute\" "
               "or \"mask\" to continue without such samples"});
}

}  // namespace penstock
