#include "penstock/sources/images/find_pictures.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/log.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/images/listing.h"
#include "penstock/sources/side_by_side.h"

namespace penstock::images {
namespace {

/// The .tar files that `path` names; none where it is a folder of pictures.
std::vector<files::DataFile> tars_of(const SourceSpec& spec) {
  for (const char* ending : {".tar.gz", ".tgz", ".tar.xz", ".tar.zst"})
    if (ascii_lower(spec.path).ends_with(ending))
      refuse("images.tar", spec.path,
             "the tar file is compressed, but members are read in place",
             "unpack it to a .tar file, or to one folder per class");
  if (!ascii_lower(spec.path).ends_with(".tar") &&
      !files::is_pattern(spec.path))
    return {};
  SourceSpec tars;
  tars.path = spec.path;
  tars.own = FileSettings();
  SourceKind kind;
  kind.extensions = {".tar"};
  return files::find_files(tars, kind);
}

const PictureSettings& settings_of(const SourceSpec& spec) {
  return *std::any_cast<PictureSettings>(&spec.own);
}

std::string root_of(const SourceSpec& spec) {
  std::string root = spec.path;
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  return root;
}

std::vector<FoundPicture> find_in_tars(const SourceSpec& spec, StopFlag stop,
                                       const std::vector<files::DataFile>& tars,
                                       PictureFiles& into) {
  const Media& media = *into.media;
  const std::string one = media.one;
  const PictureSettings& own = settings_of(spec);
  if (!own.labels.empty())
    refuse("images.labels", own.labels,
           "the " + one +
               "s are members of tar files, whose classes come from a member "
               "NAME.cls or from the folder",
           "leave \"labels\" out, or unpack the files");
  std::vector<FoundPicture> all;
  UnreadMembers unread;
  for (const files::DataFile& tar : tars) {
    const auto number = static_cast<std::int32_t>(into.tars.size());
    into.tars.push_back(tar);
    std::vector<FoundPicture> found =
        pictures_in_tar(tar.path, tars.size() == 1 ? "" : tar.relative + "/",
                        number, media, own.classes, unread, stop);
    std::ranges::move(found, std::back_inserter(all));
  }
  into.unread = unread.told(spec.path, media);
  if (all.empty())
    refuse("images.none", spec.path,
           "no member of the file has the name of a " + one,
           std::string("name .tar files that hold ") + media.shown_endings +
               " files");
  return all;
}

PictureFiles search(const SourceSpec& spec, StopFlag stop,
                    std::vector<FoundFolder>& folders) {
  PictureFiles all;
  all.media = &media_of(spec);
  all.root = root_of(spec);
  const PictureSettings& own = settings_of(spec);
  const std::vector<files::DataFile> tars = tars_of(spec);
  if (tars.empty() && own.labels.empty()) {
    find_in_folders(all, stop, folders);
    return all;
  }
  std::vector<FoundPicture> found =
      tars.empty() ? pictures_of_labels(all.root, own.labels, *all.media,
                                        own.classes, stop)
                   : find_in_tars(spec, stop, tars, all);
  std::ranges::sort(found, {}, &FoundPicture::name);
  number_classes(found, own.classes, all);
  auto names = std::make_shared<RowParts>();
  for (const FoundPicture& picture : found) {
    const std::size_t at = names->size();
    if (at > 0 && names->name(at - 1) == picture.name)
      refuse("images.twice", spec.path,
             "'" + picture.name + "' is listed twice",
             std::string("give each ") + all.media->one + " a different name");
    names->add(picture.name, static_cast<std::int64_t>(at) + 1);
    if (!tars.empty()) all.members.push_back(picture.member);
  }
  all.names = std::move(names);
  return all;
}

/// Hashed in pieces, side by side, and then their hashes.
void set_version(PictureFiles& files) {
  constexpr std::size_t kTogether = 8192;
  const std::size_t count = files.size();
  std::vector<std::array<std::uint64_t, 4>> hashes((count + kTogether - 1) /
                                                   kTogether);
  side_by_side(hashes.size(), [&](std::size_t piece) {
    const std::size_t begin = piece * kTogether;
    const std::size_t end = std::min(count, begin + kTogether);
    const std::string_view names = files.names->names(begin, end);
    const auto classes =
        std::as_bytes(std::span(files.of_class).subspan(begin, end - begin));
    hashes[piece] = {hash64(names), hash64(names, 1), hash64(classes), 0};
    if (files.members.empty()) return;
    std::vector<std::int64_t> places;
    for (std::size_t at = begin; at < end; ++at)
      for (std::int64_t number :
           {std::int64_t{files.members[at].container}, files.members[at].begin,
            files.members[at].bytes})
        places.push_back(number);
    hashes[piece][3] = hash64(std::as_bytes(std::span(places)));
  });
  Sha256 version;
  version.add(std::as_bytes(std::span(hashes)));
  if (files.have_classes())
    for (const std::string& name : files.classes) version.add(name + "\n");
  files.version = version.hex();
}

PictureFiles kept_or_found(const SourceSpec& spec, StopFlag stop) {
  const PictureSettings& own = settings_of(spec);
  const Media& media = media_of(spec);
  const bool may_keep = own.listing != Listing::none && own.labels.empty();
  if (may_keep)
    if (std::optional<PictureFiles> kept = kept_listing(root_of(spec), media))
      return std::move(*kept);
  const auto began = std::chrono::system_clock::now().time_since_epoch();
  std::vector<FoundFolder> folders;
  PictureFiles all = search(spec, stop, folders);
  set_version(all);
  const bool many = all.size() >= kManyPictures;
  if (may_keep && !folders.empty() && (many || own.listing == Listing::kept))
    keep_listing(
        all, folders,
        std::chrono::duration_cast<std::chrono::nanoseconds>(began).count());
  return all;
}

std::vector<std::string> classes_without_pictures(const PictureFiles& files) {
  std::vector<bool> has_one(files.classes.size());
  for (const std::int32_t of : files.of_class)
    if (of >= 0) has_one[static_cast<std::size_t>(of)] = true;
  std::vector<std::string> empty;
  for (std::size_t at = 0; at < has_one.size(); ++at)
    if (!has_one[at]) empty.push_back(files.classes[at]);
  return empty;
}

}  // namespace

void refuse(const char* code, const std::string& place, std::string why,
            std::string next) {
  throw Error(ErrorKind::source, {.code = code,
                                  .what = "cannot list the files",
                                  .where = place,
                                  .why = std::move(why),
                                  .next = std::move(next)});
}

PictureFiles find_pictures(const SourceSpec& spec, StopFlag stop) {
  PictureFiles files = kept_or_found(spec, stop);
  const PictureSettings& own = settings_of(spec);
  const std::string one = files.media->one;
  if (files.size() == 0)
    refuse("images.none", files.root,
           "neither the folder nor one in it has a " + one,
           "name a folder that holds " + one + "s, or one folder per class");
  if (!own.labels.empty() || !files.members.empty()) return files;
  files.empty = classes_without_pictures(files);
  if (!files.have_classes()) {
    files.classes.clear();
  } else if (!own.classes.empty()) {
    renumber_folders(own.classes, files);
    set_version(files);
  }
  return files;
}

/// Some pictures have a class, but not all.
void warn_of_no_class(const PictureFiles& files, const std::string& place) {
  const auto none = std::ranges::count(files.of_class, -1);
  if (none == 0) return;
  const auto first = static_cast<std::size_t>(
      std::ranges::find(files.of_class, -1) - files.of_class.begin());
  log(LogLevel::warning, place + ": " + std::to_string(none) + " of " +
                             std::to_string(files.size()) + " " +
                             files.media->one + "s have no class, '" +
                             std::string(files.names->name(first)) +
                             "' the first; theirs is NULL");
}

void check_classes(const SourceSpec& spec, const PictureFiles& files,
                   bool fitted) {
  const PictureSettings& own = settings_of(spec);
  const std::string one = files.media->one;
  const std::string count =
      std::to_string(files.size()) + " " + one + (files.size() == 1 ? "" : "s");
  const std::string no_folders =
      files.empty.empty()
          ? "but no class folders"
          : "but its folder '" + files.empty.front() + "' has none";
  if (!files.have_classes() && !own.labels.empty())
    refuse("images.none", own.labels, "the file gives no " + one + " a class",
           "add a column \"class\" (or \"label\")");
  if (!files.have_classes() && !files.members.empty())
    refuse(
        "images.none", spec.path,
        "the file has " + count + ", but neither a '.cls' member nor a folder",
        "write a member NAME.cls beside each " + one +
            ", or put those of each class into a folder");
  if (!files.have_classes())
    refuse("images.none", spec.path,
           "the folder has " + count + ", " + no_folders,
           "put the " + one +
               "s of each class into a folder, or name a file as \"labels\" "
               "that lists the class of each");
  if (fitted) return;
  warn_of_no_class(files, own.labels.empty() ? spec.path : own.labels);
  // A class that is declared may be without a picture; else an empty folder is
  // most likely a mistake.
  for (const std::string& name : files.empty)
    if (std::ranges::find(own.classes, name) == own.classes.end())
      refuse("images.empty_class", files.root + "/" + name,
             "this folder has no " + one + ", so its class would be empty",
             "remove the folder, put " + one +
                 "s into it, or list its class in \"source.classes\"");
}

}  // namespace penstock::images
