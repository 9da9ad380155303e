#include "penstock/sources/images/picture_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/files/file_settings.h"

namespace penstock::images {
namespace {

std::string lower_of(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool is_pattern(const std::string& path) {
  return path.find_first_of("*?[") != path.npos;
}

/// The .tar files that `path` names; none where it is a folder of pictures.
std::vector<files::DataFile> tars_of(const SourceSpec& spec) {
  if (!lower_of(spec.path).ends_with(".tar") && !is_pattern(spec.path))
    return {};
  SourceSpec tars;
  tars.path = spec.path;
  tars.own = FileSettings();
  SourceKind kind;
  kind.extensions = {".tar"};
  return files::find_files(tars, kind);
}

std::vector<FoundPicture> find_all(const SourceSpec& spec, StopFlag stop,
                                   PictureFiles& into) {
  const Media& media = *into.media;
  const std::string one = media.one;
  const auto& own = *std::any_cast<PictureSettings>(&spec.own);
  const std::vector<files::DataFile> tars = tars_of(spec);
  into.root = spec.path;
  while (into.root.size() > 1 && into.root.ends_with('/')) into.root.pop_back();
  if (tars.empty())
    return own.labels.empty()
               ? pictures_in_folders(into.root, media, stop)
               : pictures_of_labels(into.root, own.labels, media, stop);
  if (!own.labels.empty())
    refuse("images.labels", own.labels,
           "the " + one +
               "s are members of tar files, which have classes of "
               "their own: a member NAME.cls, or the folder",
           "leave \"labels\" out, or unpack the files");
  std::vector<FoundPicture> all;
  for (const files::DataFile& tar : tars) {
    const auto number = static_cast<std::int32_t>(into.tars.size());
    into.tars.push_back(tar.path);
    std::vector<FoundPicture> found =
        pictures_in_tar(tar.path, tars.size() == 1 ? "" : tar.relative + "/",
                        number, media, stop);
    std::ranges::move(found, std::back_inserter(all));
  }
  if (all.empty())
    refuse("images.none", spec.path, "no member of it is named like a " + one,
           std::string("name .tar files that hold ") + media.shown_endings +
               " files");
  return all;
}

/// The sorted classes, and which of them each picture has.
void number_classes(std::vector<FoundPicture>& found, PictureFiles& into) {
  for (const FoundPicture& picture : found)
    if (picture.has_class &&
        (into.classes.empty() || into.classes.back() != picture.of_class))
      into.classes.push_back(picture.of_class);
  std::ranges::sort(into.classes);
  into.classes.erase(std::unique(into.classes.begin(), into.classes.end()),
                     into.classes.end());
  for (FoundPicture& picture : found)
    if (picture.has_class)
      picture.place.of_class = static_cast<std::int32_t>(
          std::ranges::lower_bound(into.classes, picture.of_class) -
          into.classes.begin());
}

}  // namespace

void refuse(const char* code, const std::string& place, std::string why,
            std::string next) {
  throw Error(ErrorKind::source, {.code = code,
                                  .what = "cannot list pictures",
                                  .where = place,
                                  .why = std::move(why),
                                  .next = std::move(next)});
}

bool is_picture_name(const std::string& name, const Media& media) {
  const std::string lower = lower_of(name);
  return std::ranges::any_of(media.endings, [&](const char* ending) {
    return lower.ends_with(ending);
  });
}

const Media& media_of(const SourceSpec& spec) {
  // Those that cannot be decoded belong to the data, and are bad samples.
  static constexpr const char* kPictures[] = {
      ".jpg", ".jpeg", ".png",  ".webp", ".bmp",  ".gif",
      ".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl"};
  static constexpr const char* kSounds[] = {
      ".wav",  ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif",
      ".aiff", ".w64",  ".m4a", ".aac", ".wma",  ".webm"};
  static constexpr Media pictures{.column = "image",
                                  .one = "picture",
                                  .endings = kPictures,
                                  .shown_endings = ".jpg, .png or .webp",
                                  .kind_of_field = "image"};
  static constexpr Media sounds{.column = "audio",
                                .one = "sound",
                                .endings = kSounds,
                                .shown_endings = ".wav, .flac, .ogg or .mp3",
                                .kind_of_field = "audio"};
  return spec.kind == "audio" ? sounds : pictures;
}

PictureFiles find_pictures(const SourceSpec& spec, StopFlag stop) {
  PictureFiles all;
  all.media = &media_of(spec);
  std::vector<FoundPicture> found = find_all(spec, stop, all);
  number_classes(found, all);
  std::ranges::sort(found, {}, &FoundPicture::name);
  all.names.reserve(found.size());
  all.places.reserve(found.size());
  for (FoundPicture& picture : found) {
    if (!all.names.empty() && all.names.back().name == picture.name)
      refuse("images.twice", spec.path,
             "'" + picture.name + "' is listed twice",
             std::string("give each ") + all.media->one + " a name of its own");
    all.names.push_back(
        {.name = std::move(picture.name), .end = std::ssize(all.names) + 1});
    all.places.push_back(picture.place);
  }
  return all;
}

}  // namespace penstock::images
