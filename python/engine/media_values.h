#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "penstock/inspect/inspect.h"

namespace penstock::python {

/// Media as Python has it: its kind, height, width, nulls.
using MediaTuple = std::tuple<std::string, std::int64_t, std::int64_t, bool>;

inline std::optional<MediaTuple> tuple_of(const std::optional<Media>& media) {
  if (!media) return std::nullopt;
  return MediaTuple(media->kind, media->height, media->width, media->nulls);
}

}  // namespace penstock::python
