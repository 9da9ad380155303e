#include <algorithm>
#include <optional>

#include "penstock/transforms/audio/decode/sound_length.h"

// A frame of MPEG begins with a header of 32 bits: 11 of sync, two of version,
// two of layer, one that is 0 before a CRC, four of bit rate, two of sampling
// rate, one of padding, one of no meaning here, two of channels and others.

namespace penstock {
namespace {

constexpr std::uint32_t kSame = 0xfffe0c00;  // of all frames: up to the rate

struct Mp3Frame {
  std::uint32_t header = 0;
  std::int64_t bytes = 0, samples = 0;
  bool first_version = false, mono = false, third_layer = false;
};

bool begins_frame(SoundBytes& file, std::int64_t at) {
  return file.byte(at) == 0xff && (file.byte(at + 1) & 0xe0) == 0xe0;
}

int kilobits_of(unsigned layer, bool first_version, unsigned index) {
  static constexpr int kRates[5][16] = {
      {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
      {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
      {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
      {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
      {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}};
  const unsigned row = first_version ? layer - 1 : layer == 1 ? 3 : 4;
  return kRates[row][index];
}

/// Nothing where no frame begins, or one whose bit rate is free.
/// ISO/IEC 11172-3, section 2.4.1.3, and 13818-3 for the lower rates: a frame
/// has samples / 8 * bit rate / rate bytes, rounded down to the unit of its
/// layer, and one unit more with padding. In kilobits, samples / 8 * 1000 is
/// samples * 125.
std::optional<Mp3Frame> mp3_frame(SoundBytes& file, std::int64_t at) {
  static constexpr int kHz[4] = {44100, 48000, 32000, 0};
  if (!begins_frame(file, at)) return std::nullopt;
  Mp3Frame frame;
  frame.header = static_cast<std::uint32_t>(file.big(at, 4));
  const unsigned version = frame.header >> 19 & 3;
  const unsigned layer = 4 - (frame.header >> 17 & 3);
  if (version == 1 || layer == 4) return std::nullopt;
  frame.first_version = version == 3;
  frame.third_layer = layer == 3;
  frame.mono = (frame.header >> 6 & 3) == 3;
  const int kbit =
      kilobits_of(layer, frame.first_version, frame.header >> 12 & 15);
  const int hz = kHz[frame.header >> 10 & 3] >> (version == 3   ? 0
                                                 : version == 2 ? 1
                                                                : 2);
  if (kbit == 0 || hz == 0) return std::nullopt;
  frame.samples = layer == 1                          ? 384
                  : layer == 2 || frame.first_version ? 1152
                                                      : 576;
  const std::int64_t unit = layer == 1 ? 4 : 1;  // bytes that padding adds
  const std::int64_t padding = frame.header >> 9 & 1;
  frame.bytes = (frame.samples * 125 * kbit / (hz * unit) + padding) * unit;
  return frame;
}

/// Where its side information ends: what says how many frames there are may
/// stand there.
/// Four bytes of header and the side information: of 32 bytes, or 17 for one
/// channel, and half as many (17 and 9) at the lower rates.
std::int64_t info_place(const Mp3Frame& frame) {
  if (frame.first_version) return frame.mono ? 21 : 36;
  return frame.mono ? 13 : 21;
}

bool says_frames(SoundBytes& file, std::int64_t at, const Mp3Frame& first) {
  const std::int64_t info = at + info_place(first);
  return first.third_layer &&
         (file.has(info, "Xing") || file.has(info, "Info")) &&
         (file.byte(info + 7) & 1) != 0;
}

/// A frame that another one of its kind follows, or the end.
bool is_followed(SoundBytes& file, std::int64_t at, const Mp3Frame& frame) {
  const std::int64_t next = at + frame.bytes;
  if (next >= file.size()) return next == file.size();
  const std::optional<Mp3Frame> other = mp3_frame(file, next);
  return (other && (other->header & kSame) == (frame.header & kSame)) ||
         file.has(next, "TAG") || file.has(next, "APETAGEX") ||
         file.has(next, "ID3");
}

/// The next frame from `at` on, which may stand behind some bytes of another
/// kind; its place goes to `at`. `first`: what it must be like.
std::optional<Mp3Frame> next_frame(SoundBytes& file, std::int64_t& at,
                                   const Mp3Frame* first) {
  // As libmpg123 has it.
  const std::int64_t most = first == nullptr ? 1 << 16 : 1024;
  at = after_id3(file, at);
  const std::int64_t last = std::min(at + most, file.size() - 4);
  for (std::int64_t begin = at; at <= last; ++at) {
    const std::optional<Mp3Frame> frame = mp3_frame(file, at);
    if (!frame || at + frame->bytes > file.size()) continue;
    if (first != nullptr && (frame->header & kSame) != (first->header & kSame))
      continue;
    if ((first != nullptr && at == begin) || is_followed(file, at, *frame))
      return frame;
  }
  return std::nullopt;
}

}  // namespace

std::string count_mp3(SoundBytes& file, std::int64_t at,
                      std::int64_t& samples) {
  constexpr unsigned kAnyRate = 0xf0;
  if (at == 0 && !begins_frame(file, at)) return {};
  const bool is_free = (file.byte(at + 2) & kAnyRate) == 0;
  const std::optional<Mp3Frame> first = next_frame(file, at, nullptr);
  // libmpg123 would write to the terminal of bytes that begin so by chance.
  if (!first && !is_free)
    return "the file begins like MP3, but has no two frames in a row";
  if (!first || says_frames(file, at, *first)) return {};
  samples = 0;
  while (const std::optional<Mp3Frame> frame = next_frame(file, at, &*first)) {
    at += frame->bytes;
    samples += frame->samples;
  }
  // libsndfile ends where libmpg123 expects the end, by the size of the file
  // and of the first frame: the estimate must not be too small. The largest
  // frame has 40 times the bytes of the smallest.
  constexpr std::int64_t kLonger = 64;
  file.resize(file.size() * kLonger);
  return {};
}

}  // namespace penstock
