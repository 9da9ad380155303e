#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// What can say where its rows, by position, are written, for messages. Slow:
/// it reads.
class RowPlaces {
 public:
  virtual ~RowPlaces() = default;
  /// "train.jsonl:51"; empty where that is not known.
  virtual std::string place_of(std::int64_t position) const = 0;
};

}  // namespace penstock
