#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/sources/sources.h"

namespace penstock {

/// What the files in a column of bytes are.
struct Media {
  std::string kind;  ///< of the field that decodes them: "image", or "audio"
  /// Of all pictures that were looked at; 0 where they differ, and of sounds.
  std::int64_t height = 0, width = 0;
  bool nulls = false;  ///< there were some before them
};

/// The first rows of a column that are not NULL.
class FirstFiles {
 public:
  static constexpr std::int64_t kRows = 16;

  /// False: no more are needed.
  bool add(const Column& values, std::int64_t row);
  /// Nothing where fewer than half of the rows can be decoded, empty ones
  /// aside. `name` is the column's.
  std::optional<Media> media(const std::string& name);
  /// See longest_sound().
  double longest_sound(const std::string& name);

 private:
  Block take();

  std::optional<Column> first_;
  bool nulls_ = false;
};

/// Of the first rows of a column of a source. Throws what opening and reading
/// it does.
std::optional<Media> media_in(const SourceSpec& spec,
                              const ColumnRequest& column, StopFlag stop);

/// Seconds of the longest of the first sounds of a column of bytes, without
/// silence at its end, at most kLongestSound; 0: none could be decoded. Throws
/// as media_in() does.
double longest_sound(const SourceSpec& spec, const std::string& column,
                     StopFlag stop);
inline constexpr double kLongestSound = 30;

}  // namespace penstock
