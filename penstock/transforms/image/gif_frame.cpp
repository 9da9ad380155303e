#include "penstock/transforms/image/gif_frame.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr const char* kCutOff = "the GIF file is cut off: its end is missing";

class Walk {
 public:
  explicit Walk(std::span<const std::byte> bytes) : bytes_(bytes) {}

  unsigned byte(std::size_t at) const {
    return at < bytes_.size() ? std::to_integer<unsigned>(bytes_[at]) : 0U;
  }
  int two(std::size_t at) const {
    return static_cast<int>(byte(at + 1) << 8 | byte(at));
  }
  bool has(std::size_t at) const { return at < bytes_.size(); }
  /// The place behind blocks and the empty one that ends them; 0: there is no
  /// end.
  std::size_t behind_blocks(std::size_t at) const {
    while (has(at)) {
      const std::size_t size = byte(at);
      if (size == 0) return at + 1;
      at += size + 1;
    }
    return 0;
  }
  /// A table of colours, where `flags` say that there is one.
  std::span<const std::byte> colours(unsigned flags, std::size_t at) const {
    if ((flags & 0x80U) == 0) return {};
    const std::size_t size = std::size_t{3} << ((flags & 7U) + 1);
    return at + size <= bytes_.size() ? bytes_.subspan(at, size)
                                      : std::span<const std::byte>();
  }

 private:
  const std::span<const std::byte> bytes_;
};

// An image descriptor (GIF89a, section 20), whose numbers are little-endian:
//   0  0x2C     1  left (2)    3  top (2)    5  width (2)    7  height (2)
//   9  flags: 0x80 a colour table follows, 0x40 interlaced, low 3 bits n
//  10  3 * 2^(n+1) bytes of colours, if any; then the bits of a first code, and
//      sub-blocks: a length byte and as many bytes, ended by an empty one
std::string read_frame(const Walk& file, std::size_t at, GifFrame& frame) {
  constexpr unsigned kInterlaced = 0x40;
  frame.left = file.two(at + 1);
  frame.top = file.two(at + 3);
  frame.frame_width = file.two(at + 5);
  frame.frame_height = file.two(at + 7);
  const unsigned flags = file.byte(at + 9);
  frame.interlaced = (flags & kInterlaced) != 0;
  at += 10;
  if (const auto own = file.colours(flags, at); !own.empty()) {
    frame.colours = own;
    at += own.size();
  } else if ((flags & 0x80U) != 0) {
    return kCutOff;
  }
  frame.code_bits = static_cast<int>(file.byte(at));
  frame.data = at + 1;
  if (file.behind_blocks(frame.data) == 0) return kCutOff;
  if (frame.code_bits < 1 || frame.code_bits > 8)
    return "damaged GIF file: its codes have " +
           std::to_string(frame.code_bits) + " bits";
  frame.width = std::max(frame.width, frame.left + frame.frame_width);
  frame.height = std::max(frame.height, frame.top + frame.frame_height);
  return {};
}

}  // namespace

// The logical screen descriptor (section 18) has its size at 6 and 8, its flags
// at 10 and its colours from 13 on. Then come blocks. An extension is 0x21, a
// label and sub-blocks; that of graphic control (0xF9, section 23) says with
// bit 0 of its fourth byte whether the seventh is the number of a transparent
// colour.
std::string find_gif_frame(std::span<const std::byte> bytes, GifFrame& frame) {
  constexpr unsigned kExtension = 0x21, kPicture = 0x2C, kControl = 0xF9;
  const Walk file(bytes);
  frame = {};
  frame.width = file.two(6);
  frame.height = file.two(8);
  const unsigned flags = file.byte(10);
  frame.colours = file.colours(flags, 13);
  std::size_t at = 13 + frame.colours.size();
  if (frame.colours.empty() && (flags & 0x80U) != 0) return kCutOff;
  while (file.has(at)) {
    const unsigned kind = file.byte(at);
    if (kind == kPicture) return read_frame(file, at, frame);
    if (kind != kExtension) break;
    if (file.byte(at + 1) == kControl && (file.byte(at + 3) & 1U) != 0)
      frame.transparent = static_cast<int>(file.byte(at + 6));
    at = file.behind_blocks(at + 2);
    if (at == 0) return kCutOff;
  }
  return file.has(at) ? "damaged GIF file: it has no picture" : kCutOff;
}

}  // namespace penstock
