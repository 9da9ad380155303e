#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/source.h"
#include "penstock/sources/spec.h"

namespace penstock::images {

/// What the files of a source are: pictures, or sounds.
struct Media {
  const char* column;                    ///< of their bytes
  const char* one;                       ///< in messages: "picture"
  std::span<const char* const> endings;  ///< of names, in lower case
  const char* shown_endings;
  const char* kind_of_field;
};
/// Of a source of kind "images" or "audio".
const Media& media_of(const SourceSpec& spec);

/// True for names that end as those of such files do.
bool is_picture_name(std::string_view name, const Media& media);

/// Where the bytes of a picture are: in a file of its own, or within a tar.
struct PicturePlace {
  std::int32_t container = -1;  ///< of PictureFiles::tars; -1: its own file
  std::int32_t of_class = -1;   ///< of PictureFiles::classes; -1: it has none
  std::int64_t begin = 0, bytes = 0;
  std::int64_t changed_ns = 0;
};

/// The pictures that `path` names, in the order of their names by UTF-8 bytes.
struct PictureFiles {
  const Media* media = nullptr;
  std::string root;  ///< what names below it are relative to
  std::vector<std::string> tars, classes;
  std::vector<NamedRows> names;  ///< each is one row
  std::vector<PicturePlace> places;
  std::string version;     ///< names, sizes, times and classes, hashed
  std::int64_t bytes = 0;  ///< of all pictures
  /// It was found by an earlier start: places are as they were then.
  bool kept = false;

  /// The file to open for a picture.
  std::string file_of(std::size_t at) const {
    const std::int32_t tar = places[at].container;
    return tar < 0 ? root + "/" + names[at].name
                   : tars[static_cast<std::size_t>(tar)];
  }
};

/// A folder that was looked through.
struct FoundFolder {
  std::string name;  ///< below the root; "": the root
  std::int64_t changed_ns = 0;
};

}  // namespace penstock::images
