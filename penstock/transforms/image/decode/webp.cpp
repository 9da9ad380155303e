#include <webp/decode.h>

#include <cerrno>
#include <new>
#include <vector>

#include "penstock/transforms/image/decode/formats.h"

namespace penstock::images {
namespace {

class WebpDecoder final : public PictureDecoder {
 public:
  std::string decode(std::span<const std::byte> bytes,
                     const PictureHeader& header, const PictureBox& box,
                     const PictureDecoding& how, Pixels& out) override {
    const PictureMode mode = how.mode;
    const auto width = static_cast<std::size_t>(header.width);
    const std::size_t stride = width * 3;
    const std::size_t size = stride * static_cast<std::size_t>(header.height);
    whole_.resize(size);
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    int found_width = 0, found_height = 0;
    if (WebPGetInfo(data, bytes.size(), &found_width, &found_height) == 0 ||
        found_width != header.width || found_height != header.height)
      return "damaged WebP file";
    WebPDecoderConfig config;
    WebPInitDecoderConfig(&config);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {.rgba = whole_.data(),
                            .stride = static_cast<int>(stride),
                            .size = size};
    errno = 0;
    const VP8StatusCode status = WebPDecode(data, bytes.size(), &config);
    // Not every lack of memory is told as such: it calls some a damage, and
    // where the frame is set up an abort by the user.
    if (status == VP8_STATUS_OUT_OF_MEMORY ||
        (status != VP8_STATUS_OK && errno == ENOMEM))
      throw std::bad_alloc();
    if (status != VP8_STATUS_OK) return "damaged WebP file";
    out.reshape(box.width, box.height, mode);
    for (int y = 0; y < box.height; ++y)
      write_row(whole_.data() + static_cast<std::size_t>(box.top + y) * stride +
                    static_cast<std::size_t>(box.left) * 3,
                box.width, mode, out.row(y));
    return {};
  }

 private:
  std::vector<std::uint8_t> whole_;
};

}  // namespace

std::unique_ptr<PictureDecoder> make_webp_decoder() {
  return std::make_unique<WebpDecoder>();
}

}  // namespace penstock::images
