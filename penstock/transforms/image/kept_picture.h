#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "penstock/base/bytes.h"
#include "penstock/transforms/image/decoder.h"
#include "penstock/transforms/image/resize.h"

namespace penstock {

/// A decoded picture as stored: its width and height, each as int32, and
/// its pixels, row by row. It is turned as displayed. One that could not
/// be decoded has no size, and in place of pixels why.
struct KeptPicture {
  /// The bytes that say the size; of a picture that has one no others are
  /// looked at.
  static constexpr std::size_t kHead = 2 * sizeof(std::int32_t);
  /// What is stored of a picture that could not be decoded, at most.
  static constexpr std::size_t kMostBad = 512;

  explicit KeptPicture(std::span<const std::byte> run);

  int width = 0, height = 0;
  std::string why;  ///< empty: it has pixels
  const std::uint8_t* pixels = nullptr;

  PixelView part(const PictureBox& box, PictureMode mode) const;
};

/// Width and height of a picture that is kept with a longer side of `max_side`
/// pixels at most; 0: unchanged.
std::pair<int, int> kept_size(int width, int height, int max_side);

/// The bytes that are kept of an encoded picture, as its header has it.
std::size_t kept_bytes(std::span<const std::byte> encoded, PictureMode mode,
                       int max_side);

/// Makes what is stored of pictures that are kept decoded. Belongs to one
/// thread.
class PictureKeeper {
 public:
  /// `max_side`: see kept_size().
  PictureKeeper(PictureMode mode, int max_side)
      : mode_(mode), max_side_(max_side) {}

  /// Appends the picture, decoded and shrunk, or why it cannot be decoded: a
  /// damaged picture is a bad sample of its batch.
  void append(std::span<const std::byte> encoded, Bytes& out);

 private:
  std::string decode(std::span<const std::byte> encoded, Pixels*& shown);

  const PictureMode mode_;
  const int max_side_;
  const std::unique_ptr<PictureDecoder> decoder_ = make_decoder();
  Resizer resizer_;
  ResizeTaps columns_, rows_;
  Pixels stored_, turned_, shrunk_;
};

}  // namespace penstock
