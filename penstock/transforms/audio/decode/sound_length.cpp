#include "penstock/transforms/audio/decode/sound_length.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace penstock {
namespace {

constexpr int kMostChunks = 4096;  // that are looked at before the data

/// How containers of chunks lay them out.
struct Layout {
  bool big_endian = false;
  int name_bytes = 4, size_bytes = 4;
  bool size_has_header = false;  ///< the size counts name and size, too
  std::int64_t aligned = 2, first = 12;
  const char* data = "data";
};

/// The length of a chunk of sound.
struct Data {
  std::int64_t begin = 0;
  std::uint64_t said = 0;
};

class Chunks {
 public:
  Chunks(SoundBytes& file, Layout layout)
      : file_(file), layout_(layout), at_(layout.first) {}

  /// Nothing where there is no such chunk.
  std::optional<Data> find(const char* name) {
    const std::int64_t header = layout_.name_bytes + layout_.size_bytes;
    for (int n = 0; n < kMostChunks && at_ + header <= file_.size(); ++n) {
      const std::int64_t place = at_ + layout_.name_bytes;
      std::uint64_t size = layout_.big_endian
                               ? file_.big(place, layout_.size_bytes)
                               : file_.little(place, layout_.size_bytes);
      if (layout_.size_has_header)
        size -= std::min(size, static_cast<std::uint64_t>(header));
      if (file_.has(at_, name)) return Data{at_ + header, size};
      const auto left = static_cast<std::uint64_t>(file_.size() - at_ - header);
      if (size > left) return std::nullopt;
      at_ += header + static_cast<std::int64_t>(size);
      at_ += (layout_.aligned - at_ % layout_.aligned) % layout_.aligned;
    }
    return std::nullopt;
  }

 private:
  SoundBytes& file_;
  const Layout layout_;
  std::int64_t at_;
};

/// What a writer says that cannot go back to write the length.
bool is_unknown(std::uint64_t said) {
  constexpr std::uint64_t kNear = 4096;
  for (const int bits : {31, 32, 63})
    if (said <= std::uint64_t{1} << bits && said + kNear >= std::uint64_t{1}
                                                                << bits)
      return true;
  return said >= std::numeric_limits<std::uint64_t>::max() - kNear;
}

std::string check_data(SoundBytes& file, const Data& data, const char* name) {
  const auto there = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, file.size() - data.begin));
  if (data.said <= there || is_unknown(data.said)) return {};
  return std::string("the file is cut off: the chunk '") + name + "' has " +
         std::to_string(data.said) +
         " bytes according to its header, but only " + std::to_string(there) +
         " are present";
}

std::string little_endian(std::uint64_t number, int bytes) {
  std::string shown;
  for (; bytes > 0; --bytes, number >>= 8)
    shown += static_cast<char>(number & 0xff);
  return shown;
}

/// A length that is unknown becomes that of what follows.
void complete_wav(SoundBytes& file, const Data& data,
                  const std::optional<Data>& sizes) {
  const auto there = static_cast<std::uint64_t>(file.size() - data.begin);
  if (data.said > 0 && !is_unknown(data.said)) return;
  if (sizes)
    file.replace(sizes->begin + 8, little_endian(there, 8));
  else
    file.replace(data.begin - 4,
                 little_endian(std::min<std::uint64_t>(there, UINT32_MAX), 4));
}

// RF64 (EBU Tech 3306) has 0xFFFFFFFF for lengths of 32 bits, and a chunk
// "ds64" with three of 64: of the file, of the data, of the samples.
std::string check_wav(SoundBytes& file) {
  const bool is_long = !file.has(0, "RIFF");  // RF64
  std::optional<Data> data = Chunks(file, {}).find("data"), sizes;
  if (!data) return {};
  if (is_long && data->said == UINT32_MAX) {
    sizes = Chunks(file, {}).find("ds64");
    if (sizes) data->said = file.little(sizes->begin + 8, 8);
  }
  // A file that was closed says where it ends, behind other chunks.
  const std::uint64_t end =
      sizes ? file.little(sizes->begin, 8) : file.little(4, 4);
  if (data->said == 0 && !is_unknown(end) &&
      end + 8 > static_cast<std::uint64_t>(data->begin))
    return "the file has no samples";
  complete_wav(file, *data, sizes);
  return check_data(file, *data, "data");
}

}  // namespace

std::string check_chunks(SoundBytes& file) {
  if (file.has(8, "WAVE") && (file.has(0, "RIFF") || file.has(0, "RF64")))
    return check_wav(file);
  Layout layout;
  if (file.has(0, "FORM") && file.has(8, "AIF")) {
    layout.big_endian = true;
    layout.data = "SSND";
  } else if (file.has(0, "riff\x2E\x91\xCF\x11") && file.has(24, "wave")) {
    layout = {.name_bytes = 16,
              .size_bytes = 8,
              .size_has_header = true,
              .aligned = 8,
              .first = 40};
  } else {
    return {};
  }
  const std::optional<Data> data = Chunks(file, layout).find(layout.data);
  return data ? check_data(file, *data, layout.data) : "";
}

// A page of Ogg (RFC 3533, section 6) has 27 bytes of header, the last of which
// counts the bytes after it whose sum is the length of its data. The last page
// is looked for from the end, at most as far back as the longest page reaches.
std::string check_pages(SoundBytes& file) {
  constexpr std::int64_t kHeader = 27, kLongest = kHeader + 255 + 255 * 255;
  const std::int64_t end = file.size();
  std::int64_t at = end - 4;
  const std::int64_t least = std::max<std::int64_t>(0, end - kLongest);
  file.byte(least);  // one look at all of it
  while (at > least && !file.has(at, "OggS")) --at;
  std::int64_t size = kHeader + file.byte(at + 26);
  for (int i = 0; i < file.byte(at + 26); ++i)
    size += file.byte(at + kHeader + i);
  if (!file.has(at, "OggS")) return {};
  if (at + size <= end) {
    file.resize(at + size);  // libsndfile finds no length behind a tag
    return {};
  }
  return "the file is cut off: the last page has " + std::to_string(size) +
         " bytes, but only " + std::to_string(end - at) + " are present";
}

std::int64_t after_id3(SoundBytes& file, std::int64_t at) {
  constexpr std::int64_t kHeader = 10;
  constexpr unsigned kFooter = 0x10;
  while (file.has(at, "ID3")) {
    std::int64_t size = 0;  // four times seven bits
    for (int i = 6; i < 10; ++i) size = size << 7 | (file.byte(at + i) & 0x7f);
    at += kHeader + size + ((file.byte(at + 5) & kFooter) != 0 ? kHeader : 0);
  }
  return at;
}

std::string check_length(SoundBytes& file, std::int64_t& frames) {
  frames = -1;
  for (const char* begin : {"RIFF", "RF64", "riff", "FORM"})
    if (file.has(0, begin)) return check_chunks(file);
  if (file.has(0, "OggS")) return check_pages(file);
  const std::int64_t at = after_id3(file, 0);
  if (file.has(at, "fLaC")) return complete_flac(file, at);
  return count_mp3(file, at, frames);
}

}  // namespace penstock
