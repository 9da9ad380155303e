#include "penstock/transforms/image/decoder.h"

#include "penstock/base/plugin.h"

namespace penstock {

std::unique_ptr<PictureDecoder> make_decoder() {
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
  return part.make_decoder();
}

}  // namespace penstock
