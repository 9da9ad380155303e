#include "penstock/sources/images/picture_files.h"

#include <algorithm>

#include "penstock/base/ascii.h"

namespace penstock::images {

bool is_picture_name(std::string_view name, const Media& media) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  const std::string_view ending = name.substr(dot);
  return std::ranges::any_of(media.endings, [&](std::string_view known) {
    return std::ranges::equal(ending, known, {},
                              [](char c) { return ascii_lower(c); });
  });
}

const Media& media_of(const SourceSpec& spec) {
  // Those that cannot be decoded belong to the data, and are bad samples.
  static constexpr const char* kPictures[] = {
      ".jpg",  ".jpeg", ".png",  ".webp", ".bmp", ".gif", ".tif", ".tiff",
      ".heic", ".heif", ".avif", ".jxl",  ".pbm", ".pgm", ".ppm", ".pnm"};
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

}  // namespace penstock::images
