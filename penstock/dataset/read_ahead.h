#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "penstock/base/held_memory.h"
#include "penstock/base/sync.h"
#include "penstock/dataset/indexed/sample_reader.h"

namespace penstock {

/// Blocks whose rows have been used, and whose memory is for the next reads:
/// what the system gives again for large ones it fills with zeros each time.
/// Thread-safe.
class UsedBlocks {
 public:
  Block take();
  void give(Block&& used);

 private:
  static constexpr std::size_t kMost = 4;
  Mutex mutex_;
  std::vector<Block> blocks_ PENSTOCK_GUARDED_BY(mutex_);
};

/// The rows of one item of a batch, on their way from the source, or from
/// several.
class ItemRead {
 public:
  ItemRead(std::vector<SampleId> ids, std::shared_ptr<UsedBlocks> used)
      : ids_(std::move(ids)), used_(std::move(used)) {}
  /// Of rows of several sources, by source; null: none of it to read.
  explicit ItemRead(std::vector<std::shared_ptr<ItemRead>> parts)
      : parts_(std::move(parts)) {}

  /// True when take() has something to give, that of each part where there are
  /// some.
  bool done() const {
    for (const std::shared_ptr<ItemRead>& part : parts_)
      if (part != nullptr && !part->done()) return false;
    return !parts_.empty() || done_.load(std::memory_order_acquire);
  }
  ItemRead* part(std::size_t source) const { return parts_[source].get(); }
  /// What is read, in reading order.
  const std::vector<SampleId>& ids() const { return ids_; }
  /// Puts the rows into `out`, in reading order; what that held before has been
  /// used. Throws what reading threw. Once, and only when done.
  void take(Block& out);

 private:
  friend class SourceReadAhead;

  const std::vector<SampleId> ids_;
  const std::shared_ptr<UsedBlocks> used_;
  const std::vector<std::shared_ptr<ItemRead>> parts_;
  Block block_;
  MemoryCharge charge_{HeldFor::records, HeldIn::host, 0};
  std::exception_ptr error_;
  /// Released when the two before are written, which nobody writes later.
  std::atomic<bool> done_{false};
};

/// The I/O threads of one loader: they read the items of batches that are
/// planned, the earliest first, each with a reader of its own that is opened
/// when it is first needed.
///
/// Thread-safe. Nobody waits here: who began a read is called when it is done.
/// A read whose owner is gone is left out. Its end joins the threads, which
/// finish the reads that they are at.
class ReadAhead {
 public:
  struct Options {
    int threads = 1;
    StageMeter& meter;              ///< of reading
    std::function<void()> arrived;  ///< after each read, on an I/O thread
    SampleId first = 0;             ///< those before it are not read
  };

  virtual ~ReadAhead() = default;
  /// Begins to read the samples of an item; null if there is nothing to read.
  virtual std::shared_ptr<ItemRead> begin(std::span<const SampleId> ids) = 0;
  /// Reads with so many threads from here on, one or more: those that are too
  /// many finish the read that they are at, and there are fewer where the
  /// system refuses one. By the thread that destroys it.
  virtual void set_threads(int threads) = 0;
};

/// That of one source.
class SourceReadAhead final : public ReadAhead {
 public:
  /// As for SampleReader; `source` and `keys` outlive it. Throws
  /// Error(request), code exec.threads.
  SourceReadAhead(Source& source, const KeyList* keys, Options options);
  ~SourceReadAhead() override;

  std::shared_ptr<ItemRead> begin(std::span<const SampleId> ids) override;
  void set_threads(int threads) override;

 private:
  void work();

  Source& source_;
  const KeyList* const keys_;
  const Options options_;
  const std::shared_ptr<UsedBlocks> used_ = std::make_shared<UsedBlocks>();
  // Waits for room where more is planned than this, which harms nothing.
  Queue<std::weak_ptr<ItemRead>> queue_{4096};
  Headcount count_;
  Stage threads_;  // last: they use all the above
};

/// The rows of `ids`, which are in reading order: those of `ahead`, or if none
/// exists read now.
void read_rows(SampleReader& reader, std::span<const SampleId> ids,
               ItemRead* ahead, Block& out);

}  // namespace penstock
