#include "penstock/loader/slot.h"

#include <algorithm>

namespace penstock {

// How memory is guarded. A stream that waits for a batch is recorded in its
// slot before it can be given work on it. When the batch is destroyed, an event
// is recorded on each of these streams after its last work; before the slot is
// filled or freed, these and the copy that filled it are waited for. Nothing
// here takes a lock: a slot belongs to one thread at a time, and the ring hands
// it over.

Slot::~Slot() {
  try {
    settle();
  } catch (...) {
    log_exception(LogLevel::warning,
                  "a batch's memory is freed without waiting for its readers");
  }
}

void Slot::settle() {
  ready.wait();
  for (const Event& event : read) event.wait();
  read.clear();
}

std::vector<SampleId> Slot::live_ids() const {
  std::vector<SampleId> live = ids;
  for (const RejectedSample& bad : rejected)
    if (bad.substitute < 0) live[static_cast<std::size_t>(bad.row)] = -1;
  return live;
}

bool Slot::end_reading() noexcept {
  bool ended = true;
  for (const std::shared_ptr<Stream>& stream : readers) {
    try {
      if (stream->capturing()) {  // an event would be the graph's
        log(LogLevel::warning,
            "a batch was destroyed during the capture of a CUDA graph on a "
            "stream that reads it, so its memory is not reused; destroy the "
            "batch after the capture");
        ended = false;
        continue;
      }
      read.push_back(stream->record_untimed());
    } catch (...) {
      try {
        stream->synchronize();
      } catch (...) {
        log_exception(LogLevel::warning,
                      "a stream that read a batch cannot be waited for");
        ended = false;
      }
    }
  }
  readers.clear();
  return ended;
}

std::shared_ptr<Slot> SlotRing::take() {
  Lock lock(mutex_);
  while (free_.empty() && !closed_) returned_.wait(mutex_);
  if (closed_) return nullptr;
  return free_.pop();
}

void SlotRing::give_back(std::shared_ptr<Slot> slot) {
  Lock lock(mutex_);
  if (slot->lent) --lent_;
  slot->lent = false;
  free_.push(std::move(slot));
  returned_.notify_one();
}

std::shared_ptr<Slot> SlotRing::try_take() {
  Lock lock(mutex_);
  if (closed_ || free_.empty()) return nullptr;
  return free_.pop();
}

void SlotRing::lend(Slot& slot) {
  Lock lock(mutex_);
  slot.lent = true;
  ++lent_;
}

int SlotRing::lent() const {
  Lock lock(mutex_);
  return lent_;
}

void SlotRing::close() {
  Lock lock(mutex_);
  closed_ = true;
  returned_.notify_all();
}

void SlotMaker::reserve(Slot& slot, const BatchLayout& size) const {
  slot.target =
      device_.allocate(size.bytes + size.scratch).held_for(HeldFor::batches);
  if (staged_)
    slot.host = device_.allocate_pinned(size.copied).held_for(HeldFor::batches);
}

std::shared_ptr<Slot> SlotMaker::make(const BatchLayout& most,
                                      std::int64_t rows) const {
  auto slot = std::make_shared<Slot>();
  reserve(*slot, most);
  bool on_host = staged_ || device_.memory_kind() == MemoryKind::cpu;
  for (const BatchTensor& tensor : tensors_) {
    NamedTensor named{.name = tensor.name, .view = {.dtype = tensor.dtype}};
    named.view.memory = device_.memory_kind();
    named.view.device_id = device_.number();
    slot->tensors.push_back(std::move(named));
    if (tensor.what == BatchTensor::What::weight && !on_host)
      slot->host =
          device_
              .allocate_pinned(static_cast<std::size_t>(rows) * sizeof(float))
              .held_for(HeldFor::batches);
  }
  slot->fill.resize(tensors_.size());
  slot->ids.reserve(static_cast<std::size_t>(rows));
  slot->plan.ranges.reserve(static_cast<std::size_t>(rows));
  slot->plan.bin_ends.reserve(static_cast<std::size_t>(rows));
  return slot;
}

void SlotMaker::carve(Slot& slot) const {
  const BatchLayout& layout = slot.layout;
  if (layout.bytes + layout.scratch > slot.target.size() ||
      (staged_ && layout.copied > slot.host.size())) {
    slot.target = {};  // before the new one is allocated
    if (staged_) slot.host = {};
    BatchLayout more;
    more.bytes = layout.bytes + layout.bytes / 4;
    more.copied = layout.copied + layout.copied / 4;
    more.scratch = layout.scratch + layout.scratch / 4;
    reserve(slot, more);
  }
  slot.copied_bytes = staged_ ? layout.copied : 0;
  std::byte* base = staged_ ? slot.host.data() : slot.target.data();
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const BatchTensor& tensor = tensors_[t];
    std::size_t offset = slot.layout.offsets[t];
    slot.fill[t] = staged_ && tensor.queued ? nullptr : base + offset;
    if (tensor.what == BatchTensor::What::weight && !staged_ &&
        slot.host.data() != nullptr) {
      slot.fill[t] = slot.host.data();
      slot.copied_at = offset;
      slot.copied_bytes = slot.plan.bin_ends.size() * sizeof(float);
    }
    TensorView& view = slot.tensors[t].view;
    view.data = slot.target.data() + offset;
    set_shape(tensor, slot.layout, slot.plan, view.shape);
  }
}

Batch::Batch(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}

namespace {

/// Of memory that a stream, or a graph, may still read.
void keep_for_ever(std::shared_ptr<Slot> slot) {
  static auto* mutex = new Mutex;
  static auto* kept = new std::vector<std::shared_ptr<Slot>>;
  Lock lock(*mutex);
  kept->push_back(std::move(slot));
}

}  // namespace

Batch::~Batch() {
  if (slot_ == nullptr) return;
  try {
    if (!slot_->end_reading()) {
      keep_for_ever(std::move(slot_));
      return;
    }
    if (std::shared_ptr<SlotRing> ring = slot_->ring.lock())
      ring->give_back(std::move(slot_));
  } catch (...) {
    log_exception(LogLevel::warning, "the memory of a batch cannot be reused");
  }
}

Batch& Batch::operator=(Batch&& other) noexcept {
  Batch old(std::move(*this));
  slot_ = std::move(other.slot_);
  return *this;
}

void Batch::wait_on(Stream& stream) {
  wait_on(std::shared_ptr<Stream>(std::shared_ptr<void>(), &stream));
}

void refuse_capturing(std::string where) {
  throw Error(ErrorKind::request,
              {.code = "loader.capturing",
               .what = "cannot return a batch",
               .where = std::move(where),
               .why = "a CUDA graph is being captured on the stream, and would "
                      "always use this one batch",
               .next = "get the batch before the capture, and copy each batch "
                       "into the graph's own tensors"});
}

void refuse_capture(const Stream& stream) {
  if (stream.capturing()) refuse_capturing("the stream that waits for it");
}

void Batch::wait_on(std::shared_ptr<Stream> stream) {
  refuse_capture(*stream);
  std::vector<std::shared_ptr<Stream>>& readers = slot_->readers;
  if (std::ranges::find(readers, stream) != readers.end()) return;
  stream->wait(slot_->ready);
  readers.push_back(std::move(stream));
}

void Batch::wait() const { slot_->ready.wait(); }
bool Batch::arrived() const { return slot_->ready.passed(); }

Position Batch::at() const { return slot_->plan.at; }
std::int64_t Batch::rows() const { return std::ssize(slot_->plan.bin_ends); }
std::span<const SampleId> Batch::ids() const { return slot_->ids; }
std::span<const RejectedSample> Batch::rejected() const {
  return slot_->rejected;
}
std::span<const NamedTensor> Batch::tensors() const { return slot_->tensors; }

void refuse_early_end(std::string where) {
  throw Error(ErrorKind::internal,
              {.code = "internal.early_end",
               .what = "the loader ended too early",
               .where = std::move(where),
               .why = "the loader returned neither a batch nor an error",
               .next = "this is a bug in Penstock, please report it"});
}

Batch promised(std::optional<Batch> batch) {
  if (!batch) refuse_early_end("the next batch");
  return std::move(*batch);
}

}  // namespace penstock
