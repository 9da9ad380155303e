#include "penstock/transforms/image/image_part.h"

#include "penstock/base/plugin.h"

namespace penstock {

const ImagePart& image_part() {
  static const ImagePart& part = load_plugin<ImagePart>(
      {.library = "libpenstock_images.so",
       .entry = kImagePartEntry,
       .shown = "the plugin that decodes pictures",
       .kind = ErrorKind::transform,
       .code = "image",
       .install = "install libjpeg62-turbo libpng16-16 libwebp7 (Debian, "
                  "Ubuntu: apt-get install libjpeg62-turbo libpng16-16 "
                  "libwebp7); a build from source needs libjpeg62-turbo-dev "
                  "libpng-dev libwebp-dev"},
      plugin_folders());
  return part;
}

std::string inflate_text(std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  return image_part().inflate(bytes, kMost);
}

}  // namespace penstock
