#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/files/data_files.h"
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

/// Where the bytes of a picture are within a tar file.
struct TarMember {
  std::int32_t container = -1;  ///< of PictureFiles::tars
  std::int64_t begin = 0, bytes = 0;
};

/// The pictures that `path` names, in the order of their names by UTF-8 bytes.
struct PictureFiles {
  const Media* media = nullptr;
  std::string root;  ///< what names below it are relative to
  std::vector<files::DataFile> tars;
  std::vector<std::string> classes;
  std::vector<std::int64_t> numbers;      ///< that `classes` are; empty: texts
  std::shared_ptr<const RowParts> names;  ///< each is one row
  std::vector<std::int32_t> of_class;     ///< of `classes`; -1: it has none
  std::vector<std::string> empty;         ///< folders without a picture
  std::vector<TarMember> members;         ///< empty: each is a file of its own
  /// Names and classes, and where members lie, hashed.
  std::string version;
  std::string unread;  ///< a warning of what is there besides

  std::size_t size() const { return of_class.size(); }
  bool have_classes() const {
    return std::ranges::any_of(of_class, [](auto one) { return one >= 0; });
  }
  /// Where the picture is, if it is in a tar file.
  const files::DataFile& tar_of(std::size_t at) const {
    return tars[static_cast<std::size_t>(members[at].container)];
  }
  /// The file to open for a picture.
  std::string file_of(std::size_t at) const {
    return members.empty() ? (root + "/").append(names->name(at))
                           : tar_of(at).path;
  }
};

/// A folder that was looked through.
struct FoundFolder {
  std::string name;  ///< below the root; "": the root
  FileStamp stamp;
};

}  // namespace penstock::images
