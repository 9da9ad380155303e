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

/// One batch, ready on the device or on its way: named tensors with a leading
/// batch dimension, in field order.
///
/// It owns its memory until the consumer is done: destroying it records an
/// event on the stream that it was handed to, and its slot is filled again
/// only after that event has passed. Move-only. Used by one thread at a time.
class Batch {
 public:
  explicit Batch(std::shared_ptr<Slot> slot);
  ~Batch();
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&& other) noexcept;

  /// Makes `stream`'s later work wait for the data. Call it before the first
  /// use; the stream must live until the batch is destroyed.
  void wait_on(Stream& stream);

  Position at() const;
  /// Rows of this rank, padding included.
  std::int64_t rows() const;
  /// The ids of the rows; -1 for padding.
  std::span<const SampleId> ids() const;
  /// Valid as long as the batch; read them after wait_on() or ready().wait().
  std::span<const NamedTensor> tensors() const;
  /// Passes when the data has arrived.
  const Event& ready() const;

 private:
  std::shared_ptr<Slot> slot_;
  Stream* consumer_ = nullptr;
};

/// The batch that a loader was asked for where one was promised. No batch is
/// Error(internal), code internal.early_end: an end that nobody noticed would
/// pass for a complete epoch.
Batch promised(std::optional<Batch> batch);
/// Throws that error; `where` names the missing batch.
[[noreturn]] void refuse_early_end(std::string where);

}  // namespace penstock
