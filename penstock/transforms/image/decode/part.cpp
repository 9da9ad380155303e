#include <zlib.h>

#include <array>
#include <cstring>

#include "penstock/transforms/image/decode/formats.h"

namespace penstock::images {
namespace {

class AnyDecoder final : public PictureDecoder {
 public:
  std::string decode(std::span<const std::byte> bytes,
                     const PictureHeader& header, const PictureBox& box,
                     const PictureDecoding& how, Pixels& out) override {
    std::unique_ptr<PictureDecoder>& decoder =
        decoders_[static_cast<std::size_t>(header.format)];
    if (decoder == nullptr) decoder = make(header.format);
    return decoder->decode(bytes, header, box, how, out);
  }

 private:
  static std::unique_ptr<PictureDecoder> make(PictureFormat format) {
    switch (format) {
      case PictureFormat::jpeg:
        return make_jpeg_decoder();
      case PictureFormat::png:
        return make_png_decoder();
      case PictureFormat::gif:
        return make_gif_decoder();
      case PictureFormat::webp:
        break;
    }
    return make_webp_decoder();
  }

  std::array<std::unique_ptr<PictureDecoder>, 4> decoders_;
};

std::unique_ptr<PictureDecoder> make_any_decoder() {
  return std::make_unique<AnyDecoder>();
}

std::string inflate(std::span<const std::byte> bytes, std::size_t most) {
  std::string text(most, '\0');
  uLongf size = most;
  const auto* from = reinterpret_cast<const Bytef*>(bytes.data());
  if (uncompress(reinterpret_cast<Bytef*>(text.data()), &size, from,
                 bytes.size()) != Z_OK)
    return {};
  text.resize(size);
  return text;
}

constexpr ImagePart kPart{.make_decoder = make_any_decoder, .inflate = inflate};

}  // namespace

void write_row(const std::uint8_t* rgb, int width, PictureMode mode,
               std::uint8_t* out) {
  const auto pixels = static_cast<std::size_t>(width);
  if (mode == PictureMode::rgb) {
    std::memcpy(out, rgb, pixels * 3);
    return;
  }
  for (std::size_t x = 0; x < pixels; ++x, rgb += 3)
    out[x] = grey_of(rgb[0], rgb[1], rgb[2]);
}

}  // namespace penstock::images

extern "C" const penstock::ImagePart* penstock_images_part() {
  return &penstock::images::kPart;
}
