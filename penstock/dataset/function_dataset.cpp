#include "penstock/dataset/function_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/base/aligned.h"

namespace penstock {
namespace {

constexpr std::size_t kAlignment = 64;  // of a tensor that a function reads

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// `rows` rows of a tensor that begin at `data`.
TensorView rows_at(const TensorSpec& tensor, std::byte* data,
                   std::int64_t rows) {
  TensorView view{.data = data, .dtype = tensor.dtype, .shape = {rows}};
  view.shape.insert(view.shape.end(), tensor.row_shape.begin(),
                    tensor.row_shape.end());
  return view;
}

class FunctionFiller final : public RowFiller {
 public:
  FunctionFiller(const RowFunction& function, StageMeter& meter)
      : function_(function), meter_(meter) {}

  /// `device`: that of the rows, where its memory holds them; else null.
  void map(const RowLayout& layout, std::unique_ptr<RowFiller> source,
           Device* device) {
    source_layout_ = &layout;
    source_ = std::move(source);
    device_ = device;
  }

  void fill(const RowTarget& target, Stream& stream) override {
    auto end = std::ranges::find(target.ids, SampleId{-1});
    std::span ids(target.ids.begin(), end);
    PENSTOCK_ASSERT(std::all_of(end, target.ids.end(),
                                [](SampleId id) { return id == -1; }),
                    "padding comes last");
    clear_behind(target, ids.size());
    if (ids.empty()) return;
    if (source_ != nullptr) read_source(ids, target.at, stream);
    const RowLayout& layout = function_.layout;
    out_.clear();
    for (std::size_t t = 0; t < layout.tensors.size(); ++t)
      out_.push_back(
          rows_at(layout.tensors[t], target.tensors[t], std::ssize(ids)));
    BusyScope busy(meter_);
    function_.call({.ids = ids,
                    .in = in_,
                    .in_memory = memory_,
                    .out = out_,
                    .at = target.at});
    meter_.add_items(
        std::ssize(ids),
        std::ssize(ids) * static_cast<std::int64_t>(layout.row_bytes));
  }

 private:
  void clear_behind(const RowTarget& target, std::size_t rows) const {
    for (std::size_t t = 0; t < target.tensors.size(); ++t) {
      std::size_t bytes = function_.layout.tensors[t].bytes;
      if (bytes > 0)
        std::memset(target.tensors[t] + rows * bytes, 0,
                    (target.ids.size() - rows) * bytes);
    }
  }

  void read_source(std::span<const SampleId> ids, Position at, Stream& stream) {
    std::size_t needed = 0;
    for (const TensorSpec& tensor : source_layout_->tensors)
      needed += aligned(ids.size() * tensor.bytes);
    // The memory of the last call is somebody's who kept it.
    if (needed > size_ || memory_ == nullptr || memory_.use_count() > 1) {
      memory_ = allocate_aligned(needed);
      if (memory_ == nullptr) throw std::bad_alloc();
      if (device_ != nullptr && needed > size_)
        gathered_ = device_->allocate(needed);
      size_ = needed;
    }
    in_.clear();
    places_.clear();
    std::byte* filled = device_ != nullptr ? gathered_.data() : memory_.get();
    std::size_t place = 0;
    for (const TensorSpec& tensor : source_layout_->tensors) {
      in_.push_back(rows_at(tensor, memory_.get() + place, std::ssize(ids)));
      places_.push_back(filled + place);
      place += aligned(ids.size() * tensor.bytes);
    }
    source_->fill({.ids = ids, .tensors = places_, .at = at}, stream);
    if (device_ == nullptr) return;
    stream.copy(memory_.get(), filled, needed);
    stream.synchronize();
  }

  const RowFunction& function_;
  StageMeter& meter_;
  const RowLayout* source_layout_ = nullptr;
  std::unique_ptr<RowFiller> source_;
  Device* device_ = nullptr;
  Buffer gathered_;                    // on the device
  std::shared_ptr<std::byte> memory_;  // of `in_`
  std::size_t size_ = 0;
  std::vector<TensorView> in_, out_;
  std::vector<std::byte*> places_;
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

FunctionDataset::FunctionDataset(std::int64_t count, RowFunction function)
    : function_(std::move(function)), count_(count) {
  plan_.lines.push_back({.tier = Tier::none,
                         .fits = true,
                         .chosen = true,
                         .why = "a function makes the rows"});
}

FunctionDataset::FunctionDataset(std::shared_ptr<const Dataset> source,
                                 RowFunction function, Device& device)
    : source_(std::move(source)),
      function_(std::move(function)),
      device_(device.memory_kind() == MemoryKind::cpu ? nullptr : &device),
      count_(source_->rows()),
      plan_(source_->plan()) {
  plan_.tier = Tier::none;
}

std::int64_t FunctionDataset::rows_on(Side side) const {
  if (source_ != nullptr) return source_->rows_on(side);
  return side == Side::train ? count_ : 0;
}

void FunctionDataset::select(Side side, std::span<SampleId> ranks) const {
  if (source_ != nullptr) source_->select(side, ranks);
}

const std::string& FunctionDataset::fingerprint() const {
  std::call_once(hashed_, [this] {
    Sha256 all;
    all.add(source_ != nullptr ? source_->fingerprint()
                               : std::to_string(count_));
    all.add("\n" + function_.fingerprint);
    fingerprint_ = all.hex();
  });
  return fingerprint_;
}

std::unique_ptr<RowFiller> FunctionDataset::open_filler(FillMeters& meters,
                                                        bool per_sample) const {
  auto filler = std::make_unique<FunctionFiller>(
      function_, source_ != nullptr ? meters.map : meters.read);
  if (source_ != nullptr)
    filler->map(source_->layout(), source_->open_filler(meters, per_sample),
                source_->plan().tier == Tier::device ? device_ : nullptr);
  return filler;
}

bool FunctionDataset::whole_batches() const {
  return function_.whole_batches ||
         (source_ != nullptr && source_->whole_batches());
}

}  // namespace penstock
