#include "penstock/transforms/image/decoder.h"

namespace penstock {

std::unique_ptr<PictureDecoder> make_decoder() {
  return image_part().make_decoder();
}

}  // namespace penstock
