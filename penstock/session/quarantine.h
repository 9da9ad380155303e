#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/loader.h"
#include "penstock/session/folder.h"
#include "penstock/session/sample_key.h"

namespace penstock {

/// A line of JSON for each row that `source.on_bad: "skip"` left out, as far as
/// they are known one by one: "key", "column", "why", "byte"; of several
/// sources "source"; the last line may say how many "more" there are.
std::string left_out_lines(const Dataset& dataset);

/// The `quarantine.jsonl` of a run: rows that were left out of the data set,
/// and samples that batches could not use. Each has one line, however often it
/// comes. Not thread-safe.
class Quarantine {
 public:
  /// Samples of batches that get a line; later ones are only counted.
  static constexpr std::size_t kMost = 10'000;

  explicit Quarantine(RunFolder& folder) : folder_(folder) {}
  /// The rows that `source.on_bad: "skip"` left out.
  void add(const Dataset& dataset);
  /// What `loader.on_bad` masked or substituted in a batch of these rows.
  void add(const Batch& batch, const Dataset& rows);

 private:
  RunFolder& folder_;
  std::set<SampleId> listed_;
};

}  // namespace penstock
