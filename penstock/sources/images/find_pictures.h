#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/sources/images/picture_files.h"
#include "penstock/sources/stop.h"

namespace penstock::images {

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

/// Fills `names`, `of_class` and `classes` from class folders.
void find_in_folders(PictureFiles& files, StopFlag stop,
                     std::vector<FoundFolder>& folders);

// Each fills what it finds; find_pictures() sorts, and numbers classes.
struct FoundPicture {
  std::string name;
  std::string of_class = {};
  bool has_class = false;
  TarMember member = {};
};
std::vector<FoundPicture> pictures_of_labels(const std::string& root,
                                             const std::string& labels,
                                             const Media& media, StopFlag stop);
/// `prefix` stands before the names of members.
std::vector<FoundPicture> pictures_in_tar(const std::string& path,
                                          const std::string& prefix,
                                          std::int32_t container,
                                          const Media& media, StopFlag stop);

[[noreturn]] void refuse(const char* code, const std::string& place,
                         std::string why, std::string next);

}  // namespace penstock::images
