#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock {

/// The EXIF data in a text chunk of PNG, "Raw profile type exif", as
/// ImageMagick wrote them before there was a chunk eXIf: laid out as TIFF has
/// it. Empty: the chunk is not one of those, or damaged, as Pillow has it.
/// `kind`: tEXt, zTXt or iTXt. Of the last two, compressed ones take the plugin
/// that decodes pictures.
std::string exif_of_text(std::string_view kind,
                         std::span<const std::byte> chunk);

}  // namespace penstock
