#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "penstock/transforms/image/decode/formats.h"
#include "penstock/transforms/image/gif_frame.h"

// The codes of GIF: LZW (Welch 1984) whose codes grow from code_bits + 1 to 12
// bits. A code stands for an earlier one and a byte behind it; a clear code
// forgets all, an end code ends.

namespace penstock::images {
namespace {

/// The bytes of blocks as codes, least bits first.
class Codes {
 public:
  Codes(std::span<const std::byte> bytes, std::size_t at)
      : bytes_(bytes), at_(at) {}

  /// -1: there are no more.
  int next(int bits) {
    while (have_ < bits) {
      const int byte = next_byte();
      if (byte < 0) return -1;
      held_ |= static_cast<unsigned>(byte) << have_;
      have_ += 8;
    }
    const auto code = static_cast<int>(held_ & ((1U << bits) - 1));
    held_ >>= bits;
    have_ -= bits;
    return code;
  }

 private:
  int next_byte() {
    if (left_ == 0) {
      left_ =
          at_ < bytes_.size() ? std::to_integer<std::size_t>(bytes_[at_++]) : 0;
      if (left_ == 0) return -1;
    }
    if (at_ >= bytes_.size()) return -1;
    --left_;
    return std::to_integer<int>(bytes_[at_++]);
  }

  const std::span<const std::byte> bytes_;
  std::size_t at_, left_ = 0;
  unsigned held_ = 0;
  int have_ = 0;
};

class GifDecoder final : public PictureDecoder {
 public:
  std::string decode(std::span<const std::byte> bytes, const PictureHeader&,
                     const PictureBox& box, const PictureDecoding& how,
                     Pixels& out) override {
    GifFrame frame;
    std::string why = find_gif_frame(bytes, frame);
    if (!why.empty()) return why;
    const auto area = static_cast<std::size_t>(frame.frame_width) *
                      static_cast<std::size_t>(frame.frame_height);
    numbers_.clear();
    numbers_.reserve(area);
    unpack(bytes, frame, area);
    if (numbers_.size() < area)
      return "damaged GIF file: only " + std::to_string(numbers_.size()) +
             " of its " + std::to_string(area) + " pixels are present";
    out.reshape(box.width, box.height, how.mode);
    make_colours(frame);
    line_.resize(static_cast<std::size_t>(box.width) * 3);
    for (int y = 0; y < box.height; ++y)
      write(frame, box, box.top + y, how.mode, out.row(y));
    return {};
  }

 private:
  static constexpr int kMostCodes = 4096;

  // The GIF89a specification, appendix F. Invariants:
  // 1. Codes below `clear` are single bytes; those in (end, known) are the code
  //    earlier_[c], which is less than c, and the byte last_[c] after it. So a
  //    chain of them ends, after at most 4096 steps.
  // 2. `code == known` is the one code that is used before it is defined: the
  //    text of the code before it and its first byte again.
  // 3. With 4096 codes nothing more is learnt until a clear code. The width
  //    stays 12 then, as encoders that defer the clear code expect.
  void unpack(std::span<const std::byte> bytes, const GifFrame& frame,
              std::size_t area) {
    Codes codes(bytes, frame.data);
    const int clear = 1 << frame.code_bits, end = clear + 1;
    int bits = frame.code_bits + 1, known = end + 1, before = -1;
    for (int i = 0; i < clear; ++i)
      last_[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
    while (numbers_.size() < area) {
      const int code = codes.next(bits);
      if (code < 0 || code == end) return;
      if (code == clear) {
        bits = frame.code_bits + 1;
        known = end + 1;
        before = -1;
        continue;
      }
      if (code > known || (code == known && before < 0) ||
          (before < 0 && code > end))
        return;
      const std::uint8_t first = add(code == known ? before : code, clear);
      if (code == known) numbers_.push_back(first);
      if (before >= 0 && known < kMostCodes) {
        earlier_[static_cast<std::size_t>(known)] =
            static_cast<std::uint16_t>(before);
        last_[static_cast<std::size_t>(known)] = first;
        ++known;
        if (known == 1 << bits && bits < 12) ++bits;
      }
      before = code;
    }
    numbers_.resize(area);
  }

  /// Appends what a code stands for; its first byte.
  std::uint8_t add(int code, int clear) {
    const std::size_t begin = numbers_.size();
    auto at = static_cast<std::size_t>(code);
    while (at > static_cast<std::size_t>(clear)) {
      numbers_.push_back(last_[at]);
      at = earlier_[at];
    }
    numbers_.push_back(last_[at]);
    std::reverse(numbers_.begin() + static_cast<std::ptrdiff_t>(begin),
                 numbers_.end());
    return numbers_[begin];
  }

  /// Without a table they are greys.
  void make_colours(const GifFrame& frame) {
    for (std::size_t i = 0; i < 256; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        colours_[i][c] =
            i * 3 < frame.colours.size()
                ? static_cast<std::uint8_t>(frame.colours[i * 3 + c])
            : frame.colours.empty() ? static_cast<std::uint8_t>(i)
                                    : std::uint8_t{0};
  }

  /// The line of the data that is shown at `y`: first every eighth, then those
  /// between, every eighth, fourth and second.
  /// Appendix E of the specification: four passes over the picture, of which
  /// the lines are stored one after the other.
  static int stored_line(int y, int height) {
    int before = 0;
    constexpr std::array<std::array<int, 2>, 4> kPasses = {
        {{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
    for (const auto& [first, step] : kPasses) {
      if (y >= first && (y - first) % step == 0)
        return before + (y - first) / step;
      before += height > first ? (height - first + step - 1) / step : 0;
    }
    return 0;
  }

  void write(const GifFrame& frame, const PictureBox& box, int y,
             PictureMode mode, std::uint8_t* out) {
    const int row = y - frame.top;
    const bool inside = row >= 0 && row < frame.frame_height;
    const int line =
        inside && frame.interlaced ? stored_line(row, frame.frame_height) : row;
    const std::uint8_t none = static_cast<std::uint8_t>(
        frame.transparent >= 0 ? frame.transparent : 0);
    for (int x = 0; x < box.width; ++x) {
      const int column = box.left + x - frame.left;
      const bool shown = inside && column >= 0 && column < frame.frame_width;
      const std::uint8_t number =
          shown ? numbers_[static_cast<std::size_t>(line) *
                               static_cast<std::size_t>(frame.frame_width) +
                           static_cast<std::size_t>(column)]
                : none;
      std::memcpy(line_.data() + static_cast<std::size_t>(x) * 3,
                  colours_[number].data(), 3);
    }
    write_row(line_.data(), box.width, mode, out);
  }

  std::vector<std::uint8_t> numbers_, line_;
  std::array<std::uint16_t, kMostCodes> earlier_{};
  std::array<std::uint8_t, kMostCodes> last_{};
  std::array<std::array<std::uint8_t, 3>, 256> colours_{};
};

}  // namespace

std::unique_ptr<PictureDecoder> make_gif_decoder() {
  return std::make_unique<GifDecoder>();
}

}  // namespace penstock::images
