#include "penstock/dataset/read_ahead.h"

namespace penstock {

Block UsedBlocks::take() {
  Lock lock(mutex_);
  if (blocks_.empty()) return {};
  Block block = std::move(blocks_.back());
  blocks_.pop_back();
  return block;
}

void UsedBlocks::give(Block&& used) {
  used.clear();
  Lock lock(mutex_);
  if (!used.columns.empty() && blocks_.size() < kMost)
    blocks_.push_back(std::move(used));
}

void ItemRead::take(Block& out) {
  PENSTOCK_ASSERT(done(), "an item is filled when its rows have been read");
  if (error_) std::rethrow_exception(error_);
  charge_.change_to(0);  // its caller's from here on
  std::swap(out, block_);
  used_->give(std::move(block_));
}

SourceReadAhead::SourceReadAhead(Source& source, const KeyList* keys,
                                 Options options)
    : source_(source),
      keys_(keys),
      options_(std::move(options)),
      count_(options_.threads),
      threads_({.name = "read",
                .workers = options_.threads,
                .body = [this](int) { work(); },
                .failed = [this](std::exception_ptr) { queue_.close(); },
                .last = {}}) {}

SourceReadAhead::~SourceReadAhead() { queue_.close(); }

std::shared_ptr<ItemRead> SourceReadAhead::begin(
    std::span<const SampleId> ids) {
  std::vector<std::size_t> order;
  reading_order(ids, order, options_.first);
  if (order.empty()) return nullptr;
  std::vector<SampleId> samples;
  samples.reserve(order.size());
  for (std::size_t i : order) samples.push_back(ids[i]);
  auto read = std::make_shared<ItemRead>(std::move(samples), used_);
  queue_.push(read);
  return read;
}

// Whatever goes wrong, a reader that cannot be opened too, is the outcome of
// the read at hand, so it is heard in the turn of the batch that needs it.
void SourceReadAhead::work() {
  std::unique_ptr<SampleReader> reader;
  while (std::optional<std::weak_ptr<ItemRead>> next = queue_.pop()) {
    std::shared_ptr<ItemRead> read = next->lock();
    if (read == nullptr) continue;
    try {
      if (reader == nullptr)
        reader =
            std::make_unique<SampleReader>(source_, keys_, &options_.meter);
      read->block_ = used_->take();
      reader->read(read->ids_, read->block_);
      read->charge_.change_to(read->block_.bytes());
    } catch (...) {
      read->error_ = std::current_exception();
      reader.reset();  // it may be in any state
    }
    read->done_.store(true, std::memory_order_release);
    read.reset();
    options_.arrived();
    if (count_.leaves()) return;
  }
}

void SourceReadAhead::set_threads(int threads) {
  count_.set(threads, [this](int more) { return threads_.add(more); });
}

void read_rows(SampleReader& reader, std::span<const SampleId> ids,
               ItemRead* ahead, Block& out) {
  if (ahead == nullptr) return reader.read(ids, out);
  ahead->take(out);
  PENSTOCK_ASSERT(out.rows == std::ssize(ids),
                  "what was read ahead is what is filled");
}

}  // namespace penstock
