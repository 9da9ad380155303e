#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

// Each needs what stands above it.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "penstock/transforms/image/decode/formats.h"

// libjpeg ends a call that fails by longjmp, over frames without destructors:
// the functions that it may leave so own nothing.
//
// Of a file with one scan only the rows and the columns are decoded that are
// wanted, and one more on each side: fancy upsampling looks at the neighbours.
// So all bytes are those of the whole picture. Damage in the coded data is no
// error to libjpeg, and its pixels are those that Pillow has, too.

namespace penstock::images {
namespace {

struct ErrorManager : jpeg_error_mgr {
  std::jmp_buf failed;
  std::array<char, JMSG_LENGTH_MAX> message;
  bool no_memory = false;  // which is not the picture's fault
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  auto* errors = static_cast<ErrorManager*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->message.data());
  // In cases 1 and 3 the picture asks for more than libjpeg ever takes.
  const int which = errors->msg_parm.i[0];
  errors->no_memory = errors->msg_code == JERR_OUT_OF_MEMORY && which % 2 == 0;
  std::longjmp(errors->failed, 1);
}

void say_nothing(j_common_ptr) {}
void take_warning(j_common_ptr jpeg, int level) {
  if (level < 0) ++jpeg->err->num_warnings;
}

constexpr int kMargin = 1;
/// Each scan goes over the whole picture: a file of a few kilobytes could take
/// minutes.
constexpr int kMostScans = 500;

void count_scans(j_common_ptr jpeg) {
  auto* scans = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (scans->input_scan_number <= kMostScans) return;
  auto* errors = static_cast<ErrorManager*>(jpeg->err);
  std::snprintf(errors->message.data(), errors->message.size(),
                "the file has more than %d scans", kMostScans);
  std::longjmp(errors->failed, 1);
}

/// Pillow takes all CMYK files for inverted ones, as Adobe writes them.
/// a * b / 255, rounded to the nearest, for two bytes without a division
/// (MULDIV255 of Pillow): exact for all of them. With inverted values the
/// formula of Pillow, (255 - k) - c (255 - k) / 255, has k and c taken from
/// 255.
void rgb_of_cmyk(std::uint8_t* row, std::size_t pixels) {
  auto multiplied = [](int a, int b) {
    const int product = a * b + 128;
    return ((product >> 8) + product) >> 8;
  };
  std::uint8_t* to = row;
  for (std::size_t i = 0; i < pixels; ++i, row += 4) {
    const int light = row[3];
    for (std::size_t c = 0; c < 3; ++c)
      *to++ = static_cast<std::uint8_t>(
          std::clamp(light - multiplied(255 - row[c], light), 0, 255));
  }
}

/// Two rows of a whole picture: libjpeg makes two at once where colours have
/// half the rows, and would keep the second one for the next call.
class Lines {
 public:
  void reserve(int width) {
    // Four bytes a pixel; iMCUs are 32 wide at most.
    constexpr std::size_t kBeyond = 64, kLine = 64;
    std::size_t bytes = (static_cast<std::size_t>(width) + kBeyond) * 4;
    bytes = (bytes + kLine - 1) / kLine * kLine;
    if (bytes_.size() < 2 * bytes) bytes_.resize(2 * bytes);
    // Its vector code writes rows that are aligned around the cache, and these
    // are read right away: so they are not.
    constexpr std::size_t kBeside = 8;
    rows_ = {bytes_.data() + kBeside, bytes_.data() + bytes + kBeside};
  }
  JSAMPROW* rows() { return rows_.data(); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::array<JSAMPROW, 2> rows_{};
};

class JpegDecoder final : public PictureDecoder {
 public:
  JpegDecoder() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = fail;
    errors_.output_message = say_nothing;
    errors_.emit_message = take_warning;
    if (setjmp(errors_.failed) != 0) {
      jpeg_destroy_decompress(&jpeg_);
      throw std::bad_alloc();
    }
    jpeg_create_decompress(&jpeg_);
    progress_.progress_monitor = count_scans;
    jpeg_.progress = &progress_;
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  std::string decode(std::span<const std::byte> bytes,
                     const PictureHeader& header, const PictureBox& box,
                     const PictureDecoding& how, Pixels& out) override {
    out.reshape(box.width, box.height, how.mode);
    lines_.reserve(header.width);
    errors_.no_memory = false;
    const bool good = run(bytes, header, box, how, out);
    jpeg_abort_decompress(&jpeg_);
    if (good) return {};
    if (errors_.no_memory) throw std::bad_alloc();
    return std::string("damaged JPEG file: ") + errors_.message.data();
  }

 private:
  bool run(std::span<const std::byte> bytes, const PictureHeader& header,
           const PictureBox& box, const PictureDecoding& how, Pixels& out) {
    if (setjmp(errors_.failed) != 0) return false;
    errors_.num_warnings = 0;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()),
                 bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    auto shrunk = [&](JDIMENSION side) {
      return (static_cast<int>(side) + how.shrink - 1) / how.shrink;
    };
    if (shrunk(jpeg_.image_width) != header.width ||
        shrunk(jpeg_.image_height) != header.height) {
      std::snprintf(errors_.message.data(), errors_.message.size(),
                    "the file declares two sizes");
      return false;
    }
    choose_colours(how.mode);
    jpeg_.scale_num = 1;
    jpeg_.scale_denom = static_cast<unsigned>(how.shrink);
    if (how.fast) {
      jpeg_.dct_method = JDCT_IFAST;
      jpeg_.do_fancy_upsampling = FALSE;
    }
    jpeg_start_decompress(&jpeg_);
    read(box, how, out);
    return true;
  }

  void choose_colours(PictureMode mode) {
    if (jpeg_.jpeg_color_space == JCS_CMYK ||
        jpeg_.jpeg_color_space == JCS_YCCK)
      jpeg_.out_color_space = JCS_CMYK;
    else if (jpeg_.num_components == 1 && mode == PictureMode::grey)
      jpeg_.out_color_space = JCS_GRAYSCALE;
    else
      jpeg_.out_color_space = JCS_RGB;
  }

  // jpeg_crop_scanline() moves `first` down to the border of an iMCU and widens
  // `columns` by as much; `skipped` is what the box does not want of that. Rows
  // are skipped after the columns are chosen, the order that libjpeg-turbo
  // demands. Where no row arrives the loop counts one all the same, so that it
  // ends.
  void read(const PictureBox& box, const PictureDecoding& how, Pixels& out) {
    const int margin = how.fast ? 0 : kMargin;
    // Of fewer columns libjpeg does not smooth colours.
    constexpr int kLeastColumns = 16;
    const auto height = static_cast<int>(jpeg_.output_height);
    const auto width = static_cast<int>(jpeg_.output_width);
    const int top = std::max(0, box.top - margin);
    const int left = std::max(0, box.left - margin);
    const int right =
        std::min(width, std::max(box.left + box.width + margin, kLeastColumns));
    const int begin = std::max(0, std::min(left, right - kLeastColumns));
    auto first = static_cast<JDIMENSION>(begin);
    auto columns = static_cast<JDIMENSION>(right - begin);
    const bool part = static_cast<int>(columns) < width;
    if (part) jpeg_crop_scanline(&jpeg_, &first, &columns);
    if (top > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(top));
    const std::size_t skipped =
        static_cast<std::size_t>(box.left) - (part ? first : 0);
    const auto pixel = static_cast<std::size_t>(jpeg_.output_components);
    const auto wanted = static_cast<std::size_t>(box.width);
    const int end = std::min(height, box.top + box.height);
    for (int y = top; y < end;) {
      const JDIMENSION most = static_cast<JDIMENSION>(std::min(2, end - y));
      const JDIMENSION read = jpeg_read_scanlines(&jpeg_, lines_.rows(), most);
      for (JDIMENSION i = 0; i < std::max(read, 1U); ++i, ++y) {
        if (y < box.top) continue;
        std::uint8_t* from = lines_.rows()[i] + skipped * pixel;
        std::uint8_t* to = out.row(y - box.top);
        if (jpeg_.out_color_space == JCS_CMYK) rgb_of_cmyk(from, wanted);
        if (pixel == 1)
          std::copy_n(from, wanted, to);
        else
          write_row(from, box.width, how.mode, to);
      }
    }
  }

  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  Lines lines_;
};

}  // namespace

std::unique_ptr<PictureDecoder> make_jpeg_decoder() {
  return std::make_unique<JpegDecoder>();
}

}  // namespace penstock::images
