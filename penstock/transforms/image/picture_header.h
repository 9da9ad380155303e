#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "penstock/transforms/image/picture.h"

namespace penstock {

enum class PictureFormat : std::uint8_t { jpeg, png, webp, gif };

/// What the first bytes of an encoded picture say.
struct PictureHeader {
  PictureFormat format = PictureFormat::jpeg;
  int width = 0, height = 0;  ///< as stored
  /// Of EXIF, 1 to 8: how the stored picture is turned to be looked at.
  int orientation = 1;

  bool turned() const { return orientation >= 5; }
  int shown_width() const { return turned() ? height : width; }
  int shown_height() const { return turned() ? width : height; }
  /// Where a part of the picture as displayed is stored.
  PictureBox stored(const PictureBox& shown) const;
};

/// Pictures with more pixels are refused, as Pillow does, before any memory is
/// taken for them.
inline constexpr std::int64_t kMostPixels = 178'956'970;
/// As JPEG has it.
inline constexpr int kLongestSide = 65'535;

/// Reads the header, and looks for the end of the file, which those that were
/// cut off lack. What is wrong; empty: nothing. Allocates nothing and decodes
/// nothing.
std::string read_header(std::span<const std::byte> bytes,
                        PictureHeader& header);

/// Why a file whose header was read holds no numbers of classes; empty: it
/// does.
std::string why_no_mask(std::span<const std::byte> bytes,
                        const PictureHeader& header);

/// Turns pixels as stored into those that are looked at.
void turn(const Pixels& stored, int orientation, Pixels& shown);

}  // namespace penstock
