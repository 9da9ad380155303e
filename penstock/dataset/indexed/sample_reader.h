#pragma once

#include <memory>
#include <span>
#include <vector>

#include "penstock/exec/exec.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// The numbers of those `ids` that are samples (-1 is padding) from `first` on,
/// by ascending sample: the order in which an item of a batch is read, so that
/// neighbours are asked for together.
void reading_order(std::span<const SampleId> ids,
                   std::vector<std::size_t>& order, SampleId first = 0);

/// How many readers of a source may gain something by reading rows at once, and
/// have the memory for it: one where a library has one lock for everything, and
/// no more than hold a quarter of the memory that is free now.
int most_readers(const Source& source);

/// Reads rows of a source by sample. Belongs to one thread at a time.
class SampleReader {
 public:
  /// `keys` by sample; null: a sample's number is its position. The source is
  /// opened by the first read. `meter` counts the reading; may be null.
  SampleReader(Source& source, const KeyList* keys, StageMeter* meter);

  /// Fills `out` with the rows of these samples, in this order. Throws what the
  /// source throws.
  void read(std::span<const SampleId> ids, Block& out);

 private:
  ReadRequest request(std::span<const SampleId> ids);

  Source& source_;
  const KeyList* const all_keys_;
  StageMeter* const meter_;
  std::unique_ptr<Reader> reader_;
  KeyList keys_;
  std::vector<std::int64_t> positions_;
};

}  // namespace penstock
