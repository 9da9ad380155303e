#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/source.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/stop.h"

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

/// Whether the list of the files in class folders is kept for the next start.
enum class Listing : std::uint8_t {
  automatic,  ///< from kManyPictures on
  kept,
  none,
};
inline constexpr std::size_t kManyPictures = 10'000;

/// The settings that these kinds alone have (SourceSpec::own).
struct PictureSettings {
  std::string labels;  ///< a file that says which class a picture has
  Listing listing = Listing::automatic;
};

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

/// A folder of class folders as torchvision's ImageFolder has it: the names of
/// the folders, sorted, are the classes; links are followed, names that begin
/// with '.' are like others, the case of extensions does not matter. With
/// `labels`, the pictures that the file lists. Of .tar files the members, whose
/// class is in a member of the same name that ends with ".cls", or else the
/// folder that they are in.
///
/// Throws Error(source): images.none, images.empty_class, images.labels,
/// images.tar, files.missing, files.none.
PictureFiles find_pictures(const SourceSpec& spec, StopFlag stop);

/// True for names that end as those of such files do.
bool is_picture_name(std::string_view name, const Media& media);

// Each fills what it finds; find_pictures() sorts, and numbers classes where
// these are not known.
struct FoundPicture {
  std::string name;
  std::string of_class = {};
  bool has_class = false;
  PicturePlace place = {};
};
/// A folder that was looked through.
struct FoundFolder {
  std::string name;  ///< below the root; "": the root
  std::int64_t changed_ns = 0;
};
/// `classes` are known afterwards, and PicturePlace::of_class is one of them.
std::vector<FoundPicture> pictures_in_folders(
    const std::string& root, const Media& media, StopFlag stop,
    std::vector<std::string>& classes, std::vector<FoundFolder>& folders);
std::vector<FoundPicture> pictures_of_labels(const std::string& root,
                                             const std::string& labels,
                                             const Media& media, StopFlag stop);
/// `prefix` stands before the names of members.
std::vector<FoundPicture> pictures_in_tar(const std::string& path,
                                          const std::string& prefix,
                                          std::int32_t container,
                                          const Media& media, StopFlag stop);

/// When a file was changed, in ns since the epoch.
inline std::int64_t time_of(const struct stat& found) {
  return std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 +
         found.st_mtim.tv_nsec;
}

[[noreturn]] void refuse(const char* code, const std::string& place,
                         std::string why, std::string next);

}  // namespace penstock::images
