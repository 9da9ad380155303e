#include "penstock/dataset/arrays/function_dataset.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "penstock/base/aligned.h"

namespace penstock {
namespace {

/// `rows` rows of a tensor that begin at `data`.
template <class Tensor>
TensorView rows_at(const Tensor& tensor, std::byte* data, std::int64_t rows) {
  TensorView view{.data = data, .dtype = tensor.dtype, .shape = {rows}};
  view.shape.insert(view.shape.end(), tensor.row_shape.begin(),
                    tensor.row_shape.end());
  return view;
}

const std::vector<DeviceField> kNoDeviceFields;

/// What this thread does is looked at for a scope, and told to the meter.
class LookedAt {
 public:
  LookedAt(ThreadSampler& sampler, StageMeter& meter)
      : sampler_(sampler), meter_(meter) {
    sampler_.begin();
  }
  ~LookedAt() {
    sampler_.end();
    meter_.add_seen(sampler_.take());
  }
  LookedAt(const LookedAt&) = delete;
  LookedAt& operator=(const LookedAt&) = delete;

 private:
  ThreadSampler& sampler_;
  StageMeter& meter_;
};

class FunctionFiller final : public SlotFiller {
 public:
  FunctionFiller(const RowFunction& function, StageMeter& meter,
                 ThreadSampler& sampler)
      : function_(function), meter_(meter), sampler_(sampler) {}

  /// `device`: that of the rows, where its memory holds them; else null.
  void map(const Dataset& dataset, Side side,
           std::unique_ptr<SlotFiller> source, Device* device) {
    dataset_ = &dataset;
    source_facts_ = &dataset.facts();
    source_ = std::move(source);
    device_ = device;
    if (device == nullptr) return;
    device_fields_ = &dataset.facts().device_fields_of(side);
    staging_.emplace(*device, 2);
  }

  void fill(const FillItem& item, Stream& stream, Faults& faults) override {
    auto end = std::ranges::find(item.ids, SampleId{-1});
    std::span ids(item.ids.begin(), end);
    PENSTOCK_ASSERT(
        std::all_of(end, item.ids.end(), [](SampleId id) { return id == -1; }),
        "padding comes last");
    clear_behind(item, ids.size());
    if (ids.empty()) return;
    if (source_ != nullptr) {
      read_source(item, ids, stream, faults);
      ids = leave_out_bad(item, ids, faults);
      if (ids.empty()) return;  // all are bad
    }
    const RowLayout& layout = function_.layout;
    out_.clear();
    for (std::size_t t = 0; t < layout.tensors.size(); ++t)
      out_.push_back(
          rows_at(layout.tensors[t], item.to[t].data, std::ssize(ids)));
    BusyScope busy(meter_);
    std::optional<LookedAt> looked;
    if (meter_.takes_long()) looked.emplace(sampler_, meter_);
    function_.call({.ids = ids,
                    .in = in_,
                    .in_memory = memory_,
                    .out = out_,
                    .at = item.at});
    if (source_ != nullptr) put_in_places(item);
    meter_.add_items(
        std::ssize(ids),
        std::ssize(ids) * static_cast<std::int64_t>(layout.row_bytes));
  }

 private:
  void clear_behind(const FillItem& item, std::size_t rows) const {
    for (std::size_t t = 0; t < item.to.size(); ++t) {
      std::size_t bytes = function_.layout.tensors[t].bytes;
      if (bytes > 0)
        std::memset(item.to[t].row(rows), 0, (item.ids.size() - rows) * bytes);
    }
  }

  /// The rows `ids` of the item, which are its first.
  void read_source(const FillItem& item, std::span<const SampleId> ids,
                   Stream& stream, Faults& faults) {
    std::size_t needed = 0;
    for (const Output& output : source_facts_->outputs)
      needed += whole_lines(ids.size() * output.bytes());
    std::size_t scratch = 0;
    for (const DeviceField& field : *device_fields_)
      scratch = std::max(scratch, ids.size() * field.scratch_bytes);
    // The memory of the last call is still in use where its caller kept it.
    if (needed > size_ || memory_ == nullptr || memory_.use_count() > 1) {
      memory_ = allocate_aligned(needed);
      if (memory_ == nullptr) throw std::bad_alloc();
      size_ = needed;
      charge_.change_to(needed);
    }
    if (device_ != nullptr && needed + scratch > gathered_.size())
      gathered_ =
          device_->allocate(needed + scratch).held_for(HeldFor::batches);
    std::byte* filled = device_ != nullptr ? gathered_.data() : memory_.get();
    FillItem wanted{.ids = ids,
                    .occurrences = item.occurrences.first(
                        std::min(ids.size(), item.occurrences.size())),
                    .at = item.at,
                    .read = item.read,
                    .substitutes = item.substitutes};
    find_places(wanted, filled);
    source_->fill(wanted, stream, faults);
    if (item.substitutes != nullptr)
      replace_bad(wanted, filled, stream, faults);
    if (device_ == nullptr) return;
    if (!device_fields_->empty()) {
      const std::vector<SampleId> live = live_ids(wanted, faults);
      wanted.ids = live;
      source_->queue(wanted, filled + needed, stream);
    }
    // What the function reads is the caller's to keep, so it is not pinned
    // itself.
    staging_->fetch(memory_.get(), filled, needed, stream);
  }

  void find_places(FillItem& wanted, std::byte* filled) {
    const std::span<const SampleId> ids = wanted.ids;
    in_.clear();
    places_.clear();
    std::size_t place = 0;
    for (const Output& output : source_facts_->outputs) {
      in_.push_back(rows_at(output, memory_.get() + place, std::ssize(ids)));
      places_.push_back({.data = filled + place, .bytes = output.bytes()});
      place += whole_lines(ids.size() * output.bytes());
    }
    add_staged(ids);
    wanted.to = places_;
  }

  /// Fills the rows again, with other samples in the places of bad ones, until
  /// all can be used: the function needs the whole batch.
  void replace_bad(FillItem& wanted, std::byte* filled, Stream& stream,
                   const Faults& faults) {
    Faults bad;
    for (const RowFault& fault : faults.rows)
      if (!wanted.substitutes->replaced(place_of(fault)))
        bad.rows.push_back(fault);
    if (bad.rows.empty()) return;
    occurrences_.assign(wanted.occurrences.begin(), wanted.occurrences.end());
    occurrences_.resize(wanted.ids.size());
    wanted.occurrences = occurrences_;
    wanted.read = nullptr;
    while (!bad.rows.empty()) {
      std::size_t before = wanted.ids.size();
      for (const RowFault& fault : bad.rows) {
        const std::size_t row = place_of(fault);
        if (row == before) continue;  // in another field, too
        occurrences_[row] = wanted.substitutes->next(row, fault);
        before = row;
      }
      bad.rows.clear();
      find_places(wanted, filled);
      source_->fill(wanted, stream, bad);
    }
  }

  static std::size_t place_of(const RowFault& fault) {
    return static_cast<std::size_t>(fault.row);
  }

  /// Whether a row of the item was rejected and nothing has taken its place.
  static std::vector<bool> bad_rows(const FillItem& item, std::size_t rows,
                                    const Faults& faults) {
    std::vector<bool> bad(rows);
    for (const RowFault& fault : faults.rows)
      bad[place_of(fault)] = item.substitutes == nullptr ||
                             !item.substitutes->replaced(place_of(fault));
    return bad;
  }

  static std::vector<SampleId> live_ids(const FillItem& item,
                                        const Faults& faults) {
    std::vector<SampleId> live(item.ids.begin(), item.ids.end());
    const std::vector<bool> bad = bad_rows(item, live.size(), faults);
    for (std::size_t row = 0; row < live.size(); ++row)
      if (bad[row]) live[row] = -1;
    return live;
  }

  /// Moves the rows that are not bad together, at the beginning of `in_`; their
  /// ids.
  std::span<const SampleId> leave_out_bad(const FillItem& item,
                                          std::span<const SampleId> ids,
                                          const Faults& faults) {
    good_.clear();
    if (faults.rows.empty()) return ids;
    const std::vector<bool> bad = bad_rows(item, ids.size(), faults);
    good_ids_.clear();
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (bad[row]) continue;
      good_.push_back(row);
      good_ids_.push_back(ids[row]);
    }
    for (TensorView& view : in_) {
      const std::size_t bytes = view.bytes() / ids.size();
      for (std::size_t i = 0; i < good_.size(); ++i)
        std::memmove(view.data + i * bytes, view.data + good_[i] * bytes,
                     bytes);
      view.shape[0] = std::ssize(good_);
    }
    return good_ids_;
  }

  /// Moves what the function made of these rows to their places.
  void put_in_places(const FillItem& item) const {
    for (std::size_t t = 0; t < item.to.size(); ++t)
      for (std::size_t i = good_.size(); i-- > 0;)
        std::memmove(item.to[t].row(good_[i]), item.to[t].row(i),
                     function_.layout.tensors[t].bytes);
  }

  /// Of fields that the device finishes nothing is copied there. It reads rows
  /// that it does not keep from pinned memory.
  void add_staged(std::span<const SampleId> ids) {
    const std::size_t outputs = places_.size();
    places_.resize(outputs + kStagedPlaces * device_fields_->size());
    for (std::size_t f = 0; f < device_fields_->size(); ++f) {
      const DeviceField& field = (*device_fields_)[f];
      if (field.element_bytes == 0) continue;
      ranges_.clear();
      for (SampleId id : ids) ranges_.push_back({.sample = id});
      lengths_.resize(ids.size());
      dataset_->lengths(source_facts_->longest.size() + field.field, ranges_,
                        lengths_);
      starts_.clear();
      std::int64_t elements = 0;
      for (std::int32_t length : lengths_) {
        starts_.push_back(elements);
        elements += length;
      }
      std::size_t bytes = ids.size() * field.element_bytes;
      if (staged_.size() < bytes)
        staged_ = device_->allocate_pinned(bytes).held_for(HeldFor::batches);
      places_[outputs + kStagedPlaces * f + 1] = {.data = staged_.data(),
                                                  .bytes = field.element_bytes,
                                                  .starts = starts_,
                                                  .lengths = lengths_};
    }
  }

  const RowFunction& function_;
  StageMeter& meter_;
  ThreadSampler& sampler_;
  const Dataset* dataset_ = nullptr;
  const DatasetFacts* source_facts_ = nullptr;
  const std::vector<DeviceField>* device_fields_ = &kNoDeviceFields;
  std::unique_ptr<SlotFiller> source_;
  Device* device_ = nullptr;
  Buffer gathered_;  // on the device
  Buffer staged_;    // pinned: rows that it does not keep
  std::optional<Staging> staging_;
  std::vector<SampleRange> ranges_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> starts_;
  std::shared_ptr<std::byte> memory_;  // of `in_`
  MemoryCharge charge_{HeldFor::batches, HeldIn::host, 0};
  std::size_t size_ = 0;
  std::vector<std::int64_t> occurrences_;
  std::vector<std::size_t> good_;  // rows that are not bad; empty: all
  std::vector<SampleId> good_ids_;
  std::vector<TensorView> in_, out_;
  std::vector<TensorPlace> places_;
};

}  // namespace

RowLayout layout_of_tensors(std::vector<TensorSpec> tensors) {
  RowLayout layout;
  for (TensorSpec& tensor : tensors) {
    tensor.bytes = static_cast<std::size_t>(elements_of(tensor.row_shape)) *
                   size_of(tensor.dtype);
    tensor.offset = layout.row_bytes;
    layout.row_bytes += tensor.bytes;
  }
  layout.tensors = std::move(tensors);
  return layout;
}

namespace {

[[noreturn]] void refuse_lengths(const std::string& output) {
  throw Error(ErrorKind::request,
              {.code = "map.lengths",
               .what = "cannot map these rows",
               .where = "field '" + output + "'",
               .why = "the samples of the field differ in length, and a "
                      "function gets rows of equal size",
               .next = "change the batches in the loop instead, or give the "
                       "field a fixed size"});
}

}  // namespace

FunctionDataset::FunctionDataset(std::int64_t count, RowFunction function,
                                 RowSides sides)
    : function_(std::move(function)), sides_(std::move(sides)) {
  facts_ = {.rows = count,
            .on_side = {sides_.train ? std::ssize(*sides_.train) : count,
                        sides_.val ? std::ssize(*sides_.val) : 0,
                        sides_.test ? std::ssize(*sides_.test) : 0},
            .outputs = outputs_of(function_.layout),
            .whole_batches = function_.whole_batches};
  facts_.plan.lines.push_back({.tier = Tier::none,
                               .fits = true,
                               .chosen = true,
                               .why = "a function produces the rows"});
}

FunctionDataset::FunctionDataset(std::shared_ptr<const Dataset> source,
                                 RowFunction function, Device& device)
    : source_(std::move(source)),
      function_(std::move(function)),
      device_(device.memory_kind() == MemoryKind::cpu ? nullptr : &device) {
  const DatasetFacts& of = source_->facts();
  for (const Output& output : of.outputs)
    if (output.lengths != Lengths::equal) refuse_lengths(output.name);
  facts_ = {.rows = of.rows,
            .on_side = of.on_side,
            .outputs = outputs_of(function_.layout),
            .plan = of.plan,
            .whole_batches = of.whole_batches || function_.whole_batches,
            .repeats = of.repeats,
            .endless = of.endless,
            .most_readers = of.most_readers,
            .chunks = of.chunks,
            .decoded_bytes = of.decoded_bytes,
            .kept_bytes = of.kept_bytes,
            .mixture = of.mixture,
            .draws = of.draws};
  facts_.plan.tier = Tier::none;
  facts_.plan.places.clear();
  facts_.plan.notes.clear();  // what the function sees is on the host
}

void FunctionDataset::select(Side side, std::span<SampleId> ranks) const {
  if (source_ != nullptr) return source_->select(side, ranks);
  const auto& numbers = side == Side::train ? sides_.train
                        : side == Side::val ? sides_.val
                                            : sides_.test;
  if (!numbers) return;  // a rank is its row's number
  for (SampleId& rank : ranks)
    if (rank >= 0) rank = (*numbers)[static_cast<std::size_t>(rank)];
}

const std::string& FunctionDataset::fingerprint() const {
  hashed_.call([this] {
    Sha256 all;
    all.add(source_ != nullptr ? source_->fingerprint()
                               : std::to_string(facts_.rows));
    all.add("\n" + function_.fingerprint);
    fingerprint_ = all.hex();
  });
  return fingerprint_;
}

std::unique_ptr<SlotFiller> FunctionDataset::open_filler(
    FillMeters& meters, const FillerOptions& options) const {
  looks_.call([this] { sampler_ = std::make_unique<ThreadSampler>(); });
  auto filler = std::make_unique<FunctionFiller>(
      function_, source_ != nullptr ? meters.map : meters.read, *sampler_);
  if (source_ == nullptr) return filler;
  const TierPlan& plan = source_->plan();
  const bool on_device =
      (gathered_on_device(plan.tier) || plan.mixed()) && device_ != nullptr;
  FillerOptions of_source = options;
  of_source.on_host = !on_device;
  filler->map(*source_, options.side, source_->open_filler(meters, of_source),
              on_device ? device_ : nullptr);
  return filler;
}

std::unique_ptr<ReadAhead> FunctionDataset::open_read_ahead(
    ReadAhead::Options options) const {
  return source_ != nullptr ? source_->open_read_ahead(std::move(options))
                            : nullptr;
}

}  // namespace penstock
