#include "penstock/transforms/image/picture_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "penstock/transforms/image/gif_frame.h"
#include "penstock/transforms/image/png_profile.h"

namespace penstock {
namespace {

using Byte = std::uint8_t;

/// The bytes of a file. What is read behind the end is 0.
struct File {
  std::span<const std::byte> bytes;

  std::size_t size() const { return bytes.size(); }
  unsigned byte(std::size_t at) const {
    return at < bytes.size() ? static_cast<Byte>(bytes[at]) : 0U;
  }
  unsigned big16(std::size_t at) const { return byte(at) << 8 | byte(at + 1); }
  unsigned big32(std::size_t at) const {
    return big16(at) << 16 | big16(at + 2);
  }
  unsigned little16(std::size_t at) const {
    return byte(at + 1) << 8 | byte(at);
  }
  unsigned little24(std::size_t at) const {
    return byte(at + 2) << 16 | little16(at);
  }
  unsigned little32(std::size_t at) const {
    return little16(at + 2) << 16 | little16(at);
  }
  bool has(std::size_t at, std::string_view text) const {
    return at <= size() && size() - at >= text.size() &&
           std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// The orientation in EXIF data, which are laid out as TIFF has it; 1 where
/// they do not say.
/// TIFF 6.0, section 2: "II" or "MM" says the order of bytes, 42 follows, then
/// the place of the first directory. That has a count (2 bytes) and entries of
/// 12: tag (2), type (2), count (4), and the value itself where it takes 4
/// bytes at most. A short is at the front of these, whatever the order of
/// bytes.
int exif_orientation(const File& tiff) {
  const bool little = tiff.has(0, "II*");
  if (!little && !tiff.has(0, {"MM\0*", 4})) return 1;
  auto two = [&](std::size_t at) {
    return little ? tiff.little16(at) : tiff.big16(at);
  };
  constexpr unsigned kOrientation = 0x0112, kShort = 3;
  constexpr std::size_t kEntry = 12;
  const std::size_t first = little ? tiff.little32(4) : tiff.big32(4);
  const unsigned entries = two(first);
  for (unsigned e = 0; e < entries; ++e) {
    const std::size_t at = first + 2 + e * kEntry;
    if (at + kEntry > tiff.size()) break;
    if (two(at) != kOrientation) continue;
    const unsigned found = two(at + 8);
    return two(at + 2) == kShort && found >= 1 && found <= 8
               ? static_cast<int>(found)
               : 1;
  }
  return 1;
}

int exif_orientation(const File& file, std::size_t at, std::size_t size) {
  at = std::min(at, file.size());
  return exif_orientation(
      {file.bytes.subspan(at, std::min(size, file.size() - at))});
}

std::string cut_off(const char* format) {
  return std::string("the ") + format + " file is cut off: its end is missing";
}

// A frame header: SOF0, SOF1 and SOF2, with Huffman coding.
// ITU-T T.81, section B.2.2, from the marker on: length (2), bits of a sample
// (1), height (2), width (2), number of components (1), and 3 bytes for each.
std::string read_frame(const File& file, std::size_t at, unsigned marker,
                       PictureHeader& header) {
  if (marker == 0xC3 || marker > 0xC2)
    return "lossless, hierarchical and arithmetic-coded JPEG files are not "
           "supported; write the file as baseline or progressive JPEG";
  if (unsigned bits = file.byte(at + 4); bits != 8)
    return "the JPEG file has " + std::to_string(bits) +
           " bits per sample, expected 8";
  const unsigned parts = file.byte(at + 9);
  if (parts != 1 && parts != 3 && parts != 4)
    return "the JPEG file has " + std::to_string(parts) +
           " components, expected 1, 3 or 4";
  header.height = static_cast<int>(file.big16(at + 5));
  header.width = static_cast<int>(file.big16(at + 7));
  return {};
}

bool is_frame(unsigned marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 &&
         marker != 0xCC;
}

// The coded data end with the marker EOI, which nearly always ends the file.
bool has_end(const File& file, std::size_t data) {
  constexpr std::string_view kEnd = "\xFF\xD9";
  return file.has(file.size() - 2, kEnd) ||
         file.text().find(kEnd, data) != std::string_view::npos;
}

// A segment is 0xFF, a marker, and a length of two bytes, big-endian, which
// counts itself but not the marker (T.81, section B.1.1.4). RST, SOI and TEM
// have no length. The walk ends at SOS, which coded data follow.
std::string read_jpeg(const File& file, PictureHeader& header) {
  constexpr unsigned kExif = 0xE1, kScan = 0xDA, kEnd = 0xD9;
  for (std::size_t at = 2; at + 4 <= file.size();) {
    if (file.byte(at) != 0xFF) {
      ++at;  // libjpeg looks for the next marker, too
      continue;
    }
    const unsigned marker = file.byte(at + 1);
    if (marker == 0xFF || marker == 0 || marker == 1 ||
        (marker >= 0xD0 && marker <= 0xD8)) {
      at += marker == 0xFF ? 1 : 2;  // fill, or without contents
      continue;
    }
    if (marker == kEnd) break;
    const std::size_t size = file.big16(at + 2);
    if (is_frame(marker)) {
      std::string why = read_frame(file, at, marker, header);
      if (!why.empty()) return why;
    }
    if (marker == kExif && file.has(at + 4, {"Exif\0\0", 6}) && size > 8)
      header.orientation = exif_orientation(file, at + 10, size - 8);
    if (marker == kScan) {
      if (header.width == 0) break;
      return has_end(file, at) ? std::string() : cut_off("JPEG");
    }
    at += 2 + std::max<std::size_t>(size, 2);
  }
  return cut_off("JPEG");
}

// After 8 bytes of signature, chunks: length (4, big-endian), type (4), data,
// and a CRC (4) of type and data. IHDR comes first, with width and height, and
// IEND last.
std::string read_png(const File& file, PictureHeader& header) {
  constexpr std::size_t kFirst = 8;
  if (!file.has(kFirst + 4, "IHDR")) return "damaged PNG file: IHDR";
  const unsigned width = file.big32(16), height = file.big32(20);
  constexpr unsigned kMost = 0x7FFFFFFF;
  if (width > kMost || height > kMost) return "damaged PNG file: its size";
  header.width = static_cast<int>(width);
  header.height = static_cast<int>(height);
  std::string profile;  // counts where there is no eXIf
  bool has_exif = false;
  for (std::size_t at = kFirst; at + 12 <= file.size();) {
    const std::size_t size = file.big32(at);
    if (file.has(at + 4, "eXIf")) {
      has_exif = true;
      header.orientation = exif_orientation(file, at + 8, size);
    }
    for (const char* kind : {"tEXt", "zTXt", "iTXt"})
      if (!has_exif && size <= file.size() - at - 12 && file.has(at + 4, kind))
        if (std::string found =
                exif_of_text(kind, file.bytes.subspan(at + 8, size));
            !found.empty())
          profile = std::move(found);
    if (file.has(at + 4, "acTL")) return "animated PNG files are not supported";
    if (file.has(at + 4, "IEND")) {
      if (!has_exif && !profile.empty())
        header.orientation =
            exif_orientation({std::as_bytes(std::span(profile))});
      return {};
    }
    if (size > file.size()) break;
    at += size + 12;
  }
  return cut_off("PNG");
}

// The size as the first chunk of a plain file has it.
// A lossy frame (RFC 6386, section 9.1) has three bytes of tag and the start
// code 9D 01 2A, then 14 bits of width and of height, with two bits of scale
// above each. "VP8L" has one byte of signature, then 14 bits of width - 1 and
// 14 of height - 1. "VP8X" has flags and three reserved bytes, then 24 bits of
// each, less 1.
void read_webp_size(const File& file, std::size_t at, PictureHeader& header) {
  const std::size_t data = at + 8;
  if (file.has(at, "VP8 ")) {
    header.width = static_cast<int>(file.little16(data + 6) & 0x3FFF);
    header.height = static_cast<int>(file.little16(data + 8) & 0x3FFF);
  } else if (file.has(at, "VP8L")) {
    const unsigned bits = file.little32(data + 1);
    header.width = static_cast<int>(bits & 0x3FFF) + 1;
    header.height = static_cast<int>(bits >> 14 & 0x3FFF) + 1;
  } else if (file.has(at, "VP8X")) {
    header.width = static_cast<int>(file.little24(data + 4)) + 1;
    header.height = static_cast<int>(file.little24(data + 7)) + 1;
  }
}

// RIFF, little-endian: a chunk is a name (4), a size (4) and its data, filled
// up to an even number of bytes.
std::string read_webp(const File& file, PictureHeader& header) {
  if (std::size_t{file.little32(4)} + 8 > file.size()) return cut_off("WebP");
  constexpr std::size_t kFirst = 12;
  read_webp_size(file, kFirst, header);
  for (std::size_t at = kFirst; at + 8 <= file.size();) {
    std::size_t size = file.little32(at + 4);
    if (file.has(at, "ANIM")) return "animated WebP files are not supported";
    if (file.has(at, "EXIF")) {
      std::size_t data = at + 8;
      // Some write the words that begin a segment of JPEG.
      const bool words = file.has(data, {"Exif\0\0", 6}) && size > 6;
      header.orientation = words ? exif_orientation(file, data + 6, size - 6)
                                 : exif_orientation(file, data, size);
    }
    at += 8 + size + size % 2;
  }
  return {};
}

/// A kind of picture that is known and not read; null: none.
const char* other_format(const File& file) {
  if (file.has(0, "BM") && file.little32(2) <= file.size()) return "BMP";
  if (file.has(0, "II*") || file.has(0, {"MM\0*", 4})) return "TIFF";
  if (file.has(4, "ftypavif") || file.has(4, "ftypavis")) return "AVIF";
  for (const char* brand : {"ftyphei", "ftyphev", "ftypmif1", "ftypmsf1"})
    if (file.has(4, brand)) return "HEIC";
  for (const char* kind : {"P1", "P2", "P3", "P4", "P5", "P6", "P7"})
    if (file.has(0, kind) && file.size() > 2 && file.byte(2) <= ' ')
      return "PBM, PGM or PPM";
  if (file.has(4, "JXL ") || file.has(0, "\xFF\x0A")) return "JPEG XL";
  if (file.has(4, "jP  ")) return "JPEG 2000";
  return nullptr;
}

std::string shown_start(const File& file) {
  constexpr std::array<char, 17> kDigits = {"0123456789ABCDEF"};
  std::string shown;
  for (std::size_t at = 0; at < std::min<std::size_t>(file.size(), 4); ++at) {
    if (at > 0) shown += ' ';
    shown += kDigits[file.byte(at) >> 4];
    shown += kDigits[file.byte(at) & 15];
  }
  return shown;
}

std::string read_any(const File& file, PictureHeader& header) {
  constexpr const char* kRead = "JPEG, PNG, WebP or GIF";
  if (file.size() == 0)
    return std::string("the file is empty, expected ") + kRead;
  if (file.has(0, "\xFF\xD8")) {
    header.format = PictureFormat::jpeg;
    return read_jpeg(file, header);
  }
  if (file.has(0, "\x89PNG\r\n\x1A\n")) {
    header.format = PictureFormat::png;
    return read_png(file, header);
  }
  if (file.has(0, "RIFF") && file.has(8, "WEBP")) {
    header.format = PictureFormat::webp;
    return read_webp(file, header);
  }
  if (file.has(0, "GIF87a") || file.has(0, "GIF89a")) {
    header.format = PictureFormat::gif;
    GifFrame frame;
    std::string why = find_gif_frame(file.bytes, frame);
    header.width = frame.width;
    header.height = frame.height;
    return why;
  }
  if (const char* other = other_format(file))
    return std::string("the file is ") + other +
           ", which is not supported: write it as " + kRead;
  return std::string("the file is not a picture in a known format, expected ") +
         kRead + "; it begins with " + shown_start(file);
}

/// Where the pixel (x, y) that is looked at is stored.
/// The eight orientations of Exif are the symmetries of a rectangle. From 5 on
/// rows and columns change places; then each axis may be mirrored. `swap` looks
/// at the shown pixel, the mirrors at the stored one, so the swap comes first.
struct Place {
  Place(int orientation, int width, int height)
      : swap(orientation >= 5),
        mirror_x(orientation == 2 || orientation == 3 || orientation >= 7),
        mirror_y(orientation == 3 || orientation == 4 || orientation == 6 ||
                 orientation == 7),
        width(width),
        height(height) {}

  int x_of(int x, int y) const {
    const int at = swap ? y : x;
    return mirror_x ? width - 1 - at : at;
  }
  int y_of(int x, int y) const {
    const int at = swap ? x : y;
    return mirror_y ? height - 1 - at : at;
  }

  const bool swap, mirror_x, mirror_y;
  const int width, height;  // as stored
};

template <std::size_t kBytes>
void turn_pixels(const Pixels& stored, int orientation, Pixels& shown) {
  const Place place(orientation, stored.width, stored.height);
  for (int y = 0; y < shown.height; ++y)
    for (int x = 0; x < shown.width; ++x)
      std::memcpy(shown.row(y) + static_cast<std::size_t>(x) * kBytes,
                  stored.row(place.y_of(x, y)) +
                      static_cast<std::size_t>(place.x_of(x, y)) * kBytes,
                  kBytes);
}

}  // namespace

PictureBox PictureHeader::stored(const PictureBox& shown) const {
  const Place place(orientation, width, height);
  const int right = shown.left + shown.width - 1;
  const int bottom = shown.top + shown.height - 1;
  const int x0 = place.x_of(shown.left, shown.top);
  const int x1 = place.x_of(right, bottom);
  const int y0 = place.y_of(shown.left, shown.top);
  const int y1 = place.y_of(right, bottom);
  return {.left = std::min(x0, x1),
          .top = std::min(y0, y1),
          .width = turned() ? shown.height : shown.width,
          .height = turned() ? shown.width : shown.height};
}

std::string read_header(std::span<const std::byte> bytes,
                        PictureHeader& header) {
  header = {};
  std::string why = read_any({bytes}, header);
  if (!why.empty()) return why;
  if (header.width < 1 || header.height < 1)
    return "its header declares " + std::to_string(header.width) + " x " +
           std::to_string(header.height) + " pixels";
  if (header.width > kLongestSide || header.height > kLongestSide)
    return "its header declares " + std::to_string(header.width) + " x " +
           std::to_string(header.height) +
           " pixels, but a side may have at most " +
           std::to_string(kLongestSide) + " pixels";
  if (std::int64_t{header.width} * header.height > kMostPixels)
    return "its header declares " + std::to_string(header.width) + " x " +
           std::to_string(header.height) + " pixels, and " +
           std::to_string(kMostPixels) + " in total are the limit";
  return {};
}

std::string why_no_mask(std::span<const std::byte> bytes,
                        const PictureHeader& header) {
  constexpr std::size_t kBits = 24, kColour = 25;
  constexpr unsigned kGrey = 0, kPalette = 3;
  const char* expected =
      ", expected PNG with a palette or in grey with at most 8 bits, whose "
      "bytes are class numbers";
  if (header.format != PictureFormat::png)
    return std::string("the file is not PNG") + expected;
  const File file{bytes};
  const unsigned colour = file.byte(kColour);
  if (colour != kGrey && colour != kPalette)
    return std::string("the PNG file has colours or alpha") + expected;
  if (file.byte(kBits) > 8)
    return std::string("the PNG file has 16 bits") + expected;
  return {};
}

void turn(const Pixels& stored, int orientation, Pixels& shown) {
  const bool swap = orientation >= 5;
  shown.reshape(swap ? stored.height : stored.width,
                swap ? stored.width : stored.height, stored.mode);
  if (stored.mode == PictureMode::rgb)
    turn_pixels<3>(stored, orientation, shown);
  else
    turn_pixels<1>(stored, orientation, shown);
}

}  // namespace penstock
