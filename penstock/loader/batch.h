#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/device/device.h"
#include "penstock/sampling/sampling.h"

namespace penstock {

struct Slot;

/// A tensor of a batch, by its name.
struct NamedTensor {
  std::string name;
  TensorView view;
};

/// A sample that could not be used, and what replaces it.
struct RejectedSample {
  SampleId sample = -1;
  SampleId substitute = -1;  ///< -1: the row is masked, its weight is 0
  std::int64_t row = 0;      ///< in this rank's batch
  std::string place;         ///< the field or column that holds it
  std::string why;           ///< what was found and what was expected
};

/// Throws Error(request), code loader.capturing: a batch cannot be taken while
/// a CUDA graph is captured on the stream that is to wait for it.
void refuse_capture(const Stream& stream);
/// The same where it is known otherwise; `where` names the stream.
[[noreturn]] void refuse_capturing(std::string where);

/// One batch, ready on the device or in flight: named tensors with a leading
/// batch dimension, in field order.
///
/// It owns its memory until all its readers are done. Read it on streams after
/// wait_on(), on the host after wait(), and in no other way. Destroying it
/// records an event on every stream that waited for it, and its memory is
/// reused only after these have passed; the host must have read it by then.
/// Move-only. Used by one thread at a time, and so are its streams while it
/// waits on them or is destroyed.
class Batch {
 public:
  explicit Batch(std::shared_ptr<Slot> slot);
  ~Batch();
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&& other) noexcept;

  /// Makes `stream`'s later work wait for the data, and the memory for that
  /// work. Of any number of streams; a second call for one does nothing. The
  /// stream must live until the batch is destroyed. Throws Error(request), code
  /// loader.capturing, where a CUDA graph is being captured on it.
  void wait_on(Stream& stream);
  /// The same for a stream that the batch keeps alive.
  void wait_on(std::shared_ptr<Stream> stream);
  /// Waits until the data has arrived, for reading it on the host where the
  /// host can. Work on a stream needs wait_on().
  void wait() const;
  /// True when wait() would not wait.
  bool arrived() const;

  Position at() const;
  /// Rows of this rank, padding included.
  std::int64_t rows() const;
  /// The samples of the rows in their order, -1 for padding; of a packed batch
  /// those of its ranges. A substitute stands in the place of a bad sample.
  std::span<const SampleId> ids() const;
  /// Bad samples of this batch, by row.
  std::span<const RejectedSample> rejected() const;
  /// Valid as long as the batch.
  std::span<const NamedTensor> tensors() const;

 private:
  std::shared_ptr<Slot> slot_;
};

/// The next batch where one was promised. No batch is Error(internal), code
/// internal.early_end: an early end that goes unnoticed would pass for a
/// complete epoch.
Batch promised(std::optional<Batch> batch);
/// Throws that error; `where` names the missing batch.
[[noreturn]] void refuse_early_end(std::string where);

/// A batch that is in the caller's memory.
struct FilledBatch {
  Position at;
  std::int64_t rows = 0;  ///< the first rows of each tensor
  std::vector<SampleId> ids;
  std::vector<RejectedSample> rejected;
};

}  // namespace penstock
