#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "penstock/transforms/image/image_part.h"
#include "penstock/transforms/image/picture.h"
#include "penstock/transforms/image/picture_header.h"

namespace penstock {

/// How a picture is decoded.
struct PictureDecoding {
  // A mode alone: exactly, at its size.
  PictureDecoding(PictureMode mode) : mode(mode) {}  // NOLINT
  PictureDecoding(PictureMode mode, bool fast, int shrink)
      : mode(mode), fast(fast), shrink(shrink) {}

  PictureMode mode;
  /// JPEG: with the fast transform and without smoothing colours, which differs
  /// from Pillow by some bytes' last bits.
  bool fast = false;
  int shrink = 1;  ///< JPEG: to 1, 1/2, 1/4 or 1/8 of its sides, rounded up
};

/// Decodes pictures; belongs to one thread at a time. Keeps its memory.
class PictureDecoder {
 public:
  virtual ~PictureDecoder() = default;
  /// Fills `out` with a part of the picture as stored, and shrunk where
  /// that is asked for (`header` and `box` are then those of the smaller one);
  /// as a rule the same bytes as Pillow's convert("RGB") or convert("L") give.
  /// What is wrong with the picture, which does not depend on the part that is
  /// wanted; empty: nothing.
  virtual std::string decode(std::span<const std::byte> bytes,
                             const PictureHeader& header, const PictureBox& box,
                             const PictureDecoding& how, Pixels& out) = 0;
};

/// Throws Error(transform) that says what to install where the plugin cannot be
/// loaded.
std::unique_ptr<PictureDecoder> make_decoder();

}  // namespace penstock
