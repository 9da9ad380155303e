#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
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
  std::vector<std::string> classes;  ///< by their numbers; empty: any
  Listing listing = Listing::automatic;
};

/// A folder of class folders as torchvision's ImageFolder has it: the names of
/// the folders, sorted, are the classes; links are followed, names that begin
/// with '.' are like others, the case of extensions does not matter. Where no
/// folder has a picture, those beside the folders, without classes. With
/// `labels`, the pictures that the file lists. Of .tar files the members, whose
/// class is in a member of the same name that ends with ".cls", or else the
/// folder that they are in. With `classes` no picture may have another one.
///
/// Throws Error(source): images.none, images.labels, images.unknown_class,
/// images.tar, files.missing, files.none.
PictureFiles find_pictures(const SourceSpec& spec, StopFlag stop);

/// Throws Error(source), for a reader of classes: images.none, no picture has
/// one; images.empty_class, a folder has no picture, and `classes` does not
/// list it, unless they were learned from others (`fitted`).
void check_classes(const SourceSpec& spec, const PictureFiles& files,
                   bool fitted);

/// Fills `names`, `of_class` and `classes` from a folder.
void find_in_folders(PictureFiles& files, StopFlag stop,
                     std::vector<FoundFolder>& folders);

// Each fills what it finds; find_pictures() sorts, and numbers classes.
struct FoundPicture {
  std::string name;
  std::string of_class = {};
  bool has_class = false, in_folder = false;  ///< that is its class
  TarMember member = {};
};
std::vector<FoundPicture> pictures_of_labels(
    const std::string& root, const std::string& labels, const Media& media,
    const std::vector<std::string>& classes, StopFlag stop);
/// Members of tar files that are neither pictures nor classes, as WebDataset
/// has them: how many, and one of each kind, by its extension.
struct UnreadMembers {
  std::int64_t members = 0;
  std::map<std::string, std::string> kinds = {};

  void add(const std::string& name);
  /// A warning of them; empty: none.
  std::string told(const std::string& path, const Media& media) const;
};
/// `prefix` stands before the names of members.
std::vector<FoundPicture> pictures_in_tar(
    const std::string& path, const std::string& prefix, std::int32_t container,
    const Media& media, const std::vector<std::string>& classes,
    UnreadMembers& unread, StopFlag stop);

/// The classes of what was found, in their order, and which of them each
/// picture has: those that `declared` lists, as it lists them, or where it is
/// empty all that are there, sorted; by number where labels alone say them, and
/// all are whole numbers.
void number_classes(const std::vector<FoundPicture>& found,
                    const std::vector<std::string>& declared,
                    PictureFiles& into);

/// The same of class folders, whose sorted classes are known.
void renumber_folders(const std::vector<std::string>& declared,
                      PictureFiles& files);

/// The classes that a source may have.
class DeclaredClasses {
 public:
  /// Empty: all are.
  explicit DeclaredClasses(const std::vector<std::string>& classes)
      : classes_(classes), known_(classes.begin(), classes.end()) {}
  /// Throws Error(source), code images.unknown_class: `place` has another one.
  void check(const std::string& of_class, const std::string& place) const;

 private:
  const std::vector<std::string>& classes_;
  const std::unordered_set<std::string_view> known_;
};

[[noreturn]] void refuse(const char* code, const std::string& place,
                         std::string why, std::string next);

}  // namespace penstock::images
