#include "penstock/transforms/image/device_decode.h"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/base/log.h"
#include "penstock/transforms/image/decoder.h"

namespace penstock {
namespace {

/// What the segments of a JPEG file say before its first scan.
class JpegSegments {
 public:
  explicit JpegSegments(std::span<const std::byte> file) : file_(file) {}

  /// One scan of three components in YCbCr; false also where anything is not as
  /// it should be.
  bool are_plain() {
    constexpr unsigned kScan = 0xDA;
    for (std::size_t at = 2; at + 4 <= file_.size();) {
      if (byte(at) != 0xFF) return false;
      const unsigned marker = byte(at + 1);
      if (marker == 0xFF) {  // fill
        ++at;
        continue;
      }
      const std::size_t size = byte(at + 2) << 8 | byte(at + 3);
      if (size < 2 || size > file_.size() - at - 2) return false;
      if (marker == kScan)
        return framed_ && byte(at + 4) == kComponents && in_ycbcr();
      if (!read(marker, at + 4, size - 2)) return false;
      at += 2 + size;
    }
    return false;
  }

 private:
  static constexpr unsigned kComponents = 3;

  unsigned byte(std::size_t at) const {
    return std::to_integer<unsigned>(file_[at]);
  }
  bool begins(std::size_t at, std::size_t size, std::string_view with) const {
    return size >= with.size() &&
           std::memcmp(file_.data() + at, with.data(), with.size()) == 0;
  }

  /// False for what a plain file does not have.
  bool read(unsigned marker, std::size_t at, std::size_t size) {
    constexpr unsigned kBaseline = 0xC0, kHuffman = 0xC4, kJfif = 0xE0,
                       kAdobe = 0xEE;
    if (marker == kBaseline) return read_frame(at, size);
    if (marker == kJfif && begins(at, size, {"JFIF\0", 5})) jfif_ = true;
    constexpr std::size_t kTransform = 11;
    if (marker == kAdobe && size > kTransform && begins(at, size, "Adobe"))
      other_colours_ = byte(at + kTransform) != 1;
    // Other frames, arithmetic coding, and markers without contents.
    return marker == kHuffman || marker > 0xDA;
  }

  bool read_frame(std::size_t at, std::size_t size) {
    constexpr std::size_t kFirst = 6, kEach = 3;
    if (framed_ || size != kFirst + kComponents * kEach || byte(at) != 8 ||
        byte(at + 5) != kComponents)
      return false;
    framed_ = true;
    const unsigned light = byte(at + kFirst + 1);  // across, down
    for (std::size_t c = 0; c < kComponents; ++c) {
      const std::size_t component = at + kFirst + c * kEach;
      numbered_ = numbered_ && byte(component) == c + 1;
      if (c > 0 && byte(component + 1) != 0x11) return false;
    }
    return light == 0x11 || light == 0x12 || light == 0x21 || light == 0x22;
  }

  /// As libjpeg finds out.
  /// libjpeg takes JFIF for YCbCr, otherwise the word of Adobe's marker,
  /// otherwise components that are numbered 1, 2, 3. This asks for more, so a
  /// doubtful file is decoded by the host; it never takes RGB for YCbCr.
  bool in_ycbcr() const { return !other_colours_ && (jfif_ || numbered_); }

  const std::span<const std::byte> file_;
  bool framed_ = false, numbered_ = true, jfif_ = false;
  bool other_colours_ = false;  // as Adobe says
};

/// What is wrong with the file; empty: nothing.
std::string decode_upright(std::span<const std::byte> file, PictureMode mode,
                           Pixels& shown) {
  PictureHeader header;
  std::string why = read_header(file, header);
  if (!why.empty()) return why;
  const PictureBox whole{0, 0, header.width, header.height};
  if (header.orientation == 1)
    return make_decoder()->decode(file, header, whole, mode, shown);
  Pixels stored;
  why = make_decoder()->decode(file, header, whole, mode, stored);
  if (why.empty()) turn(stored, header.orientation, shown);
  return why;
}

}  // namespace

bool device_decodes(std::span<const std::byte> file,
                    const PictureHeader& header) {
  return header.format == PictureFormat::jpeg && header.orientation == 1 &&
         JpegSegments(file).are_plain();
}

void decode_on_host(std::span<const std::byte> file, std::int32_t channels,
                    std::byte* image) {
  const PictureMode mode = channels == 3 ? PictureMode::rgb : PictureMode::grey;
  try {
    Pixels shown;
    const std::string why = decode_upright(file, mode, shown);
    const std::size_t bytes =
        shown.row_bytes() * static_cast<std::size_t>(shown.height);
    if (why.empty())
      std::memcpy(image, shown.row(0), bytes);
    else
      log(LogLevel::warning, "a picture cannot be decoded: " + why);
  } catch (const std::bad_alloc&) {
    throw;  // nothing is known of the picture
  } catch (...) {
    log_exception(LogLevel::warning, "a picture cannot be decoded");
  }
}

}  // namespace penstock
