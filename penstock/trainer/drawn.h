#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "penstock/loader/loader.h"

namespace penstock {

class FixedDraws;

/// The rows of a batch, and how numbers that are drawn for them get to where
/// the model computes: by `staging`, queued on `stream`. On the cpu neither is
/// used.
struct DrawnFor {
  std::int64_t epoch = 0;
  std::span<const SampleId> ids;
  Staging& staging;
  Stream& stream;
  /// While a graph is recorded: the object that keeps what is drawn. Else null.
  FixedDraws* fixed = nullptr;
};

/// Writes the numbers of one row. May be kept, with what it refers to, as long
/// as the model.
using DrawRow = std::function<void(Random& random, std::span<float> numbers)>;

/// What a pass draws, in tensors that keep their places, for a graph that reads
/// them there: they are drawn for other rows before each replay.
class FixedDraws {
 public:
  /// A pass begins, which draws what the one before it drew, in the same order.
  void begin() { next_ = 0; }
  /// The tensor of the pass's next draw(). Its numbers are those of the last
  /// draw(); the first pass, which is recorded, finds none.
  at::Tensor next(const at::Tensor& like, std::int64_t numbers,
                  std::uint64_t seed, std::uint64_t purpose,
                  const DrawRow& draw);
  /// Draws all of them for these rows.
  void draw(const DrawnFor& rows) const;

 private:
  struct One {
    at::Tensor tensor;
    std::uint64_t seed = 0, purpose = 0;
    DrawRow draw;
  };
  std::vector<One> all_;
  std::size_t next_ = 0;
};

/// [rows, numbers], float32, where `like` is: drawn on the host, by the same
/// code for all devices. A row's numbers depend on the seed, the epoch, its
/// sample and `purpose` alone, so that a step is the same whenever it is taken.
at::Tensor drawn(const at::Tensor& like, std::int64_t numbers,
                 std::uint64_t seed, const DrawnFor& rows,
                 std::uint64_t purpose, const DrawRow& draw);

}  // namespace penstock
