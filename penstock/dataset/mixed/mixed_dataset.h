#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/once.h"
#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// The tensor that says which source a row came from: int32 [], from 0 on. 0 of
/// padding, too.
inline constexpr const char* kSourceTensor = "source";

/// Throws the Error(request) of a source that cannot be mixed with others.
[[noreturn]] void refuse_mixing(std::string code, std::size_t source,
                                std::string why, std::string next);

/// Throws Error(request), code mixing.tensors, where these sources do not all
/// make the same tensors, or one makes a tensor 'source'.
void check_same_tensors(const std::vector<std::vector<Output>>& sources);

/// Rows of several data sets that make the same tensors. Their samples are
/// numbered one data set after the other, as are the ranks within a side. On
/// the side train they are mixed by their weights (`facts().mixture`);
/// elsewhere each row comes once.
///
/// Batches are put together on the host: no part keeps or finishes rows on a
/// device with memory of its own. What is drawn of a sample, by its number in
/// its own data set, is drawn under another seed in each of them.
class MixedDataset final : public Dataset {
 public:
  /// Throws Error(request), codes mixing.tensors and mixing.empty: for parts
  /// that make other tensors than the first, and for one without a row to train
  /// on where others have some.
  MixedDataset(std::vector<MixedRows> parts, Exhausted exhausted);

  /// Of all parts, what decides their sides, and their weights.
  const std::string& fingerprint() const override;
  void select(Side side, std::span<SampleId> ranks) const override;
  /// "1:42": the source, and the key within it.
  Json key_of(SampleId sample) const override;
  void lengths(std::size_t varying, std::span<const SampleRange> ranges,
               std::span<std::int32_t> out) const override;
  std::unique_ptr<SlotFiller> open_filler(
      FillMeters& meters, const FillerOptions& options) const override;
  /// Each part that is read has I/O threads of its own.
  std::unique_ptr<ReadAhead> open_read_ahead(
      ReadAhead::Options options) const override;

  /// The part that has a sample. Not of padding.
  std::size_t source_of(SampleId sample) const;
  /// Its number there.
  SampleId within(std::size_t source, SampleId sample) const {
    return sample - firsts_[source];
  }

 private:
  void add_sides();
  void add_plan();
  void mix(Exhausted exhausted);

  std::vector<SampleId> firsts_;  // and how many there are in all
  mutable Once hashed_;
  mutable std::string fingerprint_;
};

}  // namespace penstock
