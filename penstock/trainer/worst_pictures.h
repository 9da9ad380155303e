#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/loader/loader.h"

namespace penstock {

/// Small pictures of the rows with the highest loss, of those that were looked
/// at. They stay on the device, at most `kWorstRows` of them, so that none
/// waits for the batch before. One thread.
class WorstPictures {
 public:
  static constexpr std::int64_t kSide = 40;  ///< pixels of the longer side

  /// `pictures`: [rows, channels, height, width], bytes, or floats of any
  /// range, which is stretched; `loss`: [rows], below 0 for a row to leave out;
  /// `samples`: the ids of the rows.
  void add(const at::Tensor& pictures, const at::Tensor& loss,
           std::span<const SampleId> samples);
  /// Adds "picture" {"width", "height", "rgb": hexadecimal digits} to those
  /// entries of "worst" of `details` whose "sample" is known. Starts again.
  void take(Json& details);

 private:
  at::Tensor pictures_;  // [kept, 3, height, width], uint8
  at::Tensor losses_;    // [kept]
  at::Tensor rows_;      // [kept], int64: which of `samples_`
  std::vector<SampleId> samples_;
};

}  // namespace penstock
