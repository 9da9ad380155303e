#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "penstock/base/tensor.h"

/// What a device does with its memory beside copying it: see Stream::run.
/// Memory that is read is the device's, or pinned; what is written is the
/// device's. Spans of descriptions are host memory, copied by the call.
namespace penstock {

/// One field of a gather: row `rows[i]` of its table supplies `bytes` bytes,
/// which go to row i of the field's tensor.
struct GatherField {
  /// Where the field's bytes of row 0 are. An array is a table of its own; in
  /// a packed table the fields lie within one row and share the stride.
  const std::byte* table = nullptr;
  std::size_t row_stride = 0;  ///< from a row of the table to the next
  std::size_t bytes = 0;       ///< of a row; at most the stride
  std::byte* out = nullptr;    ///< row 0 of the tensor; the others follow
};

/// The rows of a packed table from `first` on, which are in other memory.
struct GatherPiece {
  std::int64_t first = 0;
  /// Bytes from where `table` and `row_stride` would have them to where they
  /// are, modulo 2^64.
  std::uint64_t shift = 0;
};
inline constexpr std::size_t kMostPieces = 3;

/// The piece whose first row is at `at`, where row 0 is at `table`.
inline GatherPiece piece_of(std::int64_t first, const std::byte* at,
                            const std::byte* table, std::size_t row_stride) {
  return {first, reinterpret_cast<std::uintptr_t>(at) -
                     reinterpret_cast<std::uintptr_t>(table) -
                     static_cast<std::uint64_t>(first) * row_stride};
}

/// Where a row is whose table begins at `table`, but for its pieces.
inline const std::byte* row_at(std::int64_t row, const std::byte* table,
                               std::size_t row_stride,
                               std::span<const GatherPiece> pieces) {
  std::uintptr_t at = reinterpret_cast<std::uintptr_t>(table) +
                      static_cast<std::uint64_t>(row) * row_stride;
  for (std::size_t p = pieces.size(); p-- > 0;)
    if (row >= pieces[p].first) {
      at += pieces[p].shift;
      break;
    }
  return reinterpret_cast<const std::byte*>(at);
}

/// Copies whole samples of resident tables into a batch, all fields at once. A
/// row index of -1 gives zeros.
struct Gather {
  std::span<const GatherField> fields;
  std::span<const std::int64_t> rows;
  /// By ascending `first`, at most kMostPieces.
  std::span<const GatherPiece> pieces = {};
};

/// How the bytes of a channel become numbers.
struct Normalization {
  double mean = 0;       ///< of the bytes, from 0 to 255
  double deviation = 1;  ///< their standard deviation; not 0
};
inline constexpr std::size_t kMostChannels = 128;
/// byte * scale + offset, rounded once.
struct Factors {
  float scale = 1, offset = 0;
};
Factors factors_of(const Normalization& channel);

/// Bytes to numbers, (byte - mean) / deviation of their channel: uint8 [rows,
/// pixels, channels]. It is computed as byte * (1 / deviation) + (-mean /
/// deviation), both factors rounded to float32 and the result rounded once to
/// that; for float16 and bfloat16 then again, to the nearest, or the even one
/// of two. So it has the same bits on every device.
struct CastNormalize {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  Dtype to = Dtype::float32;  ///< or float16, bfloat16
  std::int64_t rows = 0;
  std::int64_t pixels = 0;                  ///< of a row
  std::span<const Normalization> channels;  ///< one to kMostChannels
  /// What is written is [rows, channels, pixels].
  bool channels_first = false;
};

/// A window of an image: uint8 [height, width, channels].
struct CropWindow {
  const std::byte* image = nullptr;  ///< null: zeros
  std::int32_t height = 0;           ///< of the image
  std::int32_t width = 0;
  std::int32_t top = 0;  ///< of the window
  std::int32_t left = 0;
  bool flip = false;  ///< left becomes right
};

/// Cuts windows of one size out of images, which may differ in theirs: uint8
/// [windows, height, width, channels].
struct CropFlip {
  std::byte* out = nullptr;
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t channels = 0;
  std::span<const CropWindow> windows;
};

/// Where the taps of an axis stand among Resize::taps: of each pixel that is
/// made the first one of the window that it is made of, then of each how many
/// these are, then of each the weights, in units of 2^-22, `most` apart. The
/// magnitudes of a pixel's weights add up to less than 2.
struct ResizeAxisTaps {
  std::size_t at = 0;
  std::int32_t most = 0;

  std::size_t numbers(std::int32_t pixels) const {
    return static_cast<std::size_t>(pixels) *
           static_cast<std::size_t>(most + 2);
  }
};
inline constexpr int kResizeBits = 22;  ///< of a weight behind the point

/// A window of an image that becomes a picture of another size: uint8 [height,
/// width, channels].
struct ResizeWindow {
  const std::byte* image = nullptr;  ///< null, and no file: zeros
  /// In place of the image: the file that it is in, in the host's memory, where
  /// it stays until the work is done.
  std::span<const std::byte> file = {};
  /// The host decodes it: it is no file that decoders of devices take (see
  /// Resize::decode).
  bool host_decodes = false;
  std::int32_t height = 0;  ///< of the image
  std::int32_t width = 0;
  std::int32_t top = 0;  ///< of the window, from which taps are counted
  std::int32_t left = 0;
  std::int64_t row = 0;          ///< of the target
  ResizeAxisTaps columns, rows;  ///< of the pixels that are made
  bool columns_first = false;    ///< added up along columns, then along rows
  bool flip = false;             ///< left becomes right

  bool zeros() const { return image == nullptr && file.empty(); }
  std::size_t image_bytes(std::int32_t channels) const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels);
  }
};

/// Decodes an image of so many channels that is in a file, to uint8 [height,
/// width, channels]. Any number of threads may call it. Throws std::bad_alloc
/// alone.
using DecodeFile = void (*)(std::span<const std::byte> file,
                            std::int32_t channels, std::byte* image);

/// Resizes windows of images, which may differ in size, to pictures of one
/// size, and writes them as numbers: a pixel is a sum of its neighbours times
/// weights along one axis, rounded to a byte, and of such bytes along the other
/// one, rounded to a byte again. All in whole numbers, so it has the same bits
/// on every device.
///
/// But for images that are decoded: `decode` defines what they are. A device
/// with a decoder of its own takes for equal what that makes of baseline JPEG
/// files in YCbCr, which differs by some last bits.
struct Resize {
  std::byte* out = nullptr;  ///< [rows, height, width, channels]
  std::int32_t height = 0;   ///< of what is made
  std::int32_t width = 0;
  std::int32_t channels = 0;     ///< one to kMostChannels
  bool channels_first = false;   ///< [rows, channels, height, width]
  std::size_t number_bytes = 1;  ///< 1, 2, 4 or 8
  /// What becomes of the bytes 0 to 255 of each channel, one after the other.
  std::span<const std::byte> numbers;
  std::span<const std::int32_t> taps;
  std::span<const ResizeWindow> windows;  ///< each with a row of its own
  DecodeFile decode = nullptr;            ///< of windows that have files
};
/// What a stream of a GPU holds for these from the first one on, unless a
/// single window needs more: so much of its memory, and twice that pinned.
inline constexpr std::size_t kResizeBytes = std::size_t{1} << 20;
/// And from the first one on that has files, for images that the host decodes:
/// so much of its memory, and so much pinned.
inline constexpr std::size_t kHostDecodedBytes = std::size_t{8} << 20;
/// Then a GPU has two decoders, for all streams. Each holds so much for images
/// that it makes, and about so much for itself. A window that needs more takes
/// more.
inline constexpr std::size_t kDecodedBytes = std::size_t{32} << 20;
inline constexpr std::size_t kDecoderBytes = kDecodedBytes;
inline constexpr std::size_t kDecoders = 2;

/// A part of a row of a tensor [rows, height, width].
struct MaskBox {
  std::int64_t row = 0;
  std::int32_t top = 0, left = 0;
  std::int32_t height = 0, width = 0;
};

/// Writes one value into boxes of a tensor, which may overlap: bands of
/// spectrograms, what lies behind the end of a sample.
struct Mask {
  std::byte* out = nullptr;
  std::int64_t rows = 0;
  std::int32_t height = 0, width = 0;  ///< of a row, in elements
  std::size_t element_bytes = 4;       ///< 1, 2, 4 or 8
  std::uint64_t value = 0;             ///< the bits of an element
  std::span<const MaskBox> boxes;
};

/// A row of float32 numbers that is moved along its lines and multiplied.
struct MovedRow {
  const std::byte* from = nullptr;  ///< its numbers, [height, width]
  std::int64_t row = 0;             ///< of the target
  std::int32_t by = 0;  ///< columns to the right, below 0 to the left
  float factor = 1;     ///< 1: numbers stay unchanged
};

/// Moves rows of float32 numbers along their lines, and multiplies them: sounds
/// that are shifted in time, or made louder. What is no number stays unchanged.
/// Nothing that is written is read.
struct Move {
  std::byte* out = nullptr;
  std::int64_t rows = 0;
  std::int32_t height = 0, width = 0;  ///< of a row
  bool wraps = false;  ///< what moves out comes in at the other end, else zeros
  std::span<const MovedRow> moved;  ///< each to a row of its own
};

/// Work on a device's memory that code of the host does in its turn among the
/// work of a stream: how devices whose memory the host can address do what on a
/// GPU is a kernel of its own. See Stream::runs_host_code.
struct HostKernel {
  std::vector<std::span<const std::byte>> read = {};     ///< or pinned memory
  std::vector<std::span<const std::byte>> written = {};  ///< all of it
  std::function<void()> run = {};                        ///< must not throw
};

using DeviceOperation = std::variant<Gather, CastNormalize, CropFlip, Resize,
                                     Mask, Move, HostKernel>;

/// Internal errors: more or fewer channels than may be or one without a spread,
/// a window or a box that leaves its image or its row, a row that moves by more
/// than its width, taps that are not there, a file that nobody decodes, a row
/// of 2^31 elements, what is not aligned to its elements.
void check(const CastNormalize& cast);
void check(const CropFlip& crop);
void check(const Resize& resize);
void check(const Mask& mask);
void check(const Move& move);

}  // namespace penstock
