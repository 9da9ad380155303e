#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "penstock/transforms/image/decode/formats.h"

// All rows are read, also those behind the part that is wanted: whether a file
// is damaged must not depend on the part. libpng ends a call that fails by
// longjmp, over frames without destructors: what it may leave so owns nothing.

namespace penstock::images {
namespace {

struct Input {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
  std::array<char, 128> message{};
  bool no_memory = false;  // which is not the picture's fault
};

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  auto* input = static_cast<Input*>(png_get_error_ptr(png));
  std::snprintf(input->message.data(), input->message.size(), "%s", message);
  png_longjmp(png, 1);
}
void say_nothing(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (input->bytes.size() - input->at < count)
    png_error(png, "the file is cut off");
  std::memcpy(to, input->bytes.data() + input->at, count);
  input->at += count;
}

png_voidp take_memory(png_structp png, png_alloc_size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr)
    static_cast<Input*>(png_get_mem_ptr(png))->no_memory = true;
  return memory;
}
void free_memory(png_structp, png_voidp memory) { std::free(memory); }

struct Owner {
  png_structp png;
  png_infop info;
  ~Owner() { png_destroy_read_struct(&png, &info, nullptr); }
};

class PngDecoder final : public PictureDecoder {
 public:
  std::string decode(std::span<const std::byte> bytes, const PictureHeader&,
                     const PictureBox& box, const PictureDecoding& how,
                     Pixels& out) override {
    const PictureMode mode = how.mode;
    out.reshape(box.width, box.height, mode);
    Input input{.bytes = bytes};
    png_structp png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &input, fail,
                                 say_nothing, &input, take_memory, free_memory);
    png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      throw std::bad_alloc();
    }
    const Owner owner{png, info};
    as_index_ = mode == PictureMode::index;
    const bool good =
        read_header(png, info, input) && read(png, box, mode, out);
    if (input.no_memory) throw std::bad_alloc();
    if (good) return {};
    return std::string("damaged PNG file: ") + input.message.data();
  }

 private:
  bool read_header(png_structp png, png_infop info, Input& input) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    // Chunks that decide no pixel may be damaged.
    png_set_crc_action(png, PNG_CRC_DEFAULT, PNG_CRC_QUIET_USE);
    // Nor are they read: texts could take gigabytes.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_read_fn(png, &input, read_bytes);
    png_read_info(png, info);
    const int bits = png_get_bit_depth(png, info);
    const int colour = png_get_color_type(png, info);
    wide_grey_ = bits == 16 && colour == PNG_COLOR_TYPE_GRAY;
    if (as_index_) {
      if (colour == PNG_COLOR_TYPE_GRAY && bits > 1)
        png_set_expand_gray_1_2_4_to_8(png);  // as Pillow has it
      png_set_packing(png);
    } else if (!wide_grey_) {
      if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
      if (colour == PNG_COLOR_TYPE_GRAY && bits < 8)
        png_set_expand_gray_1_2_4_to_8(png);
      if (bits == 16) png_set_strip_16(png);
      if (colour != PNG_COLOR_TYPE_PALETTE) png_set_gray_to_rgb(png);
      png_set_strip_alpha(png);
    }
    passes_ = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    width_ = png_get_image_width(png, info);
    height_ = png_get_image_height(png, info);
    row_bytes_ = png_get_rowbytes(png, info);
    // Rows of an interlaced picture are made of several passes.
    whole_.resize(row_bytes_ * (passes_ > 1 ? height_ : 1));
    return true;
  }

  bool read(png_structp png, const PictureBox& box, PictureMode mode,
            Pixels& out) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    for (int pass = 0; pass < passes_; ++pass)
      for (std::size_t y = 0; y < height_; ++y) {
        std::uint8_t* line = whole_.data() + (passes_ > 1 ? y * row_bytes_ : 0);
        png_read_row(png, line, nullptr);
        const int at = static_cast<int>(y) - box.top;
        if (pass + 1 == passes_ && at >= 0 && at < box.height)
          write(line, box, mode, out.row(at));
      }
    png_read_end(png, nullptr);
    return true;
  }

  // A line has 1, 2 or 3 bytes a pixel here: an index, a grey of 16 bits
  // (big-endian), or red, green and blue.
  void write(std::uint8_t* line, const PictureBox& box, PictureMode mode,
             std::uint8_t* to) const {
    if (as_index_) {
      std::copy_n(line + box.left, box.width, to);
      return;
    }
    if (!wide_grey_) {
      write_row(line + static_cast<std::size_t>(box.left) * 3, box.width, mode,
                to);
      return;
    }
    // Pillow keeps 16 bits, and converts those that do not fit to white.
    for (int x = 0; x < box.width; ++x) {
      const std::uint8_t* from =
          line + static_cast<std::size_t>(box.left + x) * 2;
      const std::uint8_t grey = from[0] != 0 ? 255 : from[1];
      if (mode == PictureMode::grey) {
        *to++ = grey;
      } else {
        to = std::fill_n(to, 3, grey);
      }
    }
  }

  bool wide_grey_ = false, as_index_ = false;
  int passes_ = 1;
  std::size_t width_ = 0, height_ = 0, row_bytes_ = 0;
  std::vector<std::uint8_t> whole_;
};

}  // namespace

std::unique_ptr<PictureDecoder> make_png_decoder() {
  return std::make_unique<PngDecoder>();
}

}  // namespace penstock::images
