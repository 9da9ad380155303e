#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "penstock/sources/sources.h"

namespace penstock::python {

/// What files in a column are: "image", or "audio"; and the height and width of
/// all pictures that were looked at, 0 where they differ, and of sounds.
using Media = std::tuple<std::string, std::int64_t, std::int64_t>;

/// So many rows of a column are looked at.
inline constexpr std::int64_t kMediaRows = 16;

/// Of the rows that hold such files; nothing where none does, or nothing here
/// can decode them. `name` is the column's.
std::optional<Media> media_in(const std::string& name, Column values);

}  // namespace penstock::python
