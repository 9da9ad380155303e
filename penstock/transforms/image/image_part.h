#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace penstock {

class PictureDecoder;

/// What the plugin libpenstock_images.so gives to the program. It is linked to
/// the libraries of the formats, so that the program starts where they are
/// missing.
struct ImagePart {
  std::unique_ptr<PictureDecoder> (*make_decoder)();
  /// What zlib compressed, if it has no more than `most` bytes; else nothing.
  std::string (*inflate)(std::span<const std::byte> bytes, std::size_t most);
};

/// The one symbol that is looked up in the plugin.
inline constexpr const char* kImagePartEntry = "penstock_images_part";

/// Throws Error(transform) that says what to install where the plugin cannot be
/// loaded.
const ImagePart& image_part();

/// A compressed text of a PNG file; empty: it is damaged, or longer than texts
/// that Pillow reads, 1 MiB. Throws as image_part().
std::string inflate_text(std::span<const std::byte> bytes);

}  // namespace penstock
