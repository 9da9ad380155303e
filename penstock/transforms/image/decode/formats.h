#pragma once

#include <memory>

#include "penstock/transforms/image/decoder.h"

/// One decoder for each format, as ImagePart::make_decoder has it.
namespace penstock::images {

std::unique_ptr<PictureDecoder> make_jpeg_decoder();
std::unique_ptr<PictureDecoder> make_png_decoder();
std::unique_ptr<PictureDecoder> make_webp_decoder();
std::unique_ptr<PictureDecoder> make_gif_decoder();

/// Writes a row of RGB as requested.
void write_row(const std::uint8_t* rgb, int width, PictureMode mode,
               std::uint8_t* out);

}  // namespace penstock::images
