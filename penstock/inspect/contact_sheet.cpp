#include "penstock/inspect/contact_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "penstock/base/base64.h"
#include "penstock/base/file.h"
#include "penstock/base/half.h"
#include "penstock/inspect/small_letters.h"
#include "penstock/report/report.h"

namespace penstock {
namespace {

constexpr int kColumns = 8, kGap = 2;
constexpr int kWide =
    96;  // pictures below which there is room for large letters
constexpr std::size_t kMostPictures = 64;

/// Where the channels of a tensor of pictures are; 0: it holds none.
std::size_t channels_at(const Shape& shape) {
  if (shape.size() != 4) return 0;
  for (std::size_t at : {1U, 3U})
    if (shape[at] == 1 || shape[at] == 3) return at;
  return 0;
}

double number_at(const TensorView& view, std::size_t at) {
  auto as = [&]<class Number>(Number value) {
    std::memcpy(&value, view.data + at * sizeof(value), sizeof(value));
    return value;
  };
  switch (view.dtype) {
    case Dtype::uint8:
      return as(std::uint8_t{});
    case Dtype::int32:
      return as(std::int32_t{});
    case Dtype::int64:
      return static_cast<double>(as(std::int64_t{}));
    case Dtype::float32:
      return as(float{});
    case Dtype::float64:
      return as(double{});
    case Dtype::bfloat16:
    case Dtype::float16:
      return from_half(view.dtype, as(std::uint16_t{}));
    default:
      return 0;
  }
}

bool is_whole(Dtype dtype) {
  return dtype == Dtype::uint8 || dtype == Dtype::int32 ||
         dtype == Dtype::int64;
}

std::string shown(double value, bool whole) {
  char text[32];
  std::snprintf(text, sizeof(text), whole ? "%.0f" : "%.3g", value);
  return text;
}

bool holds_draws(const NamedTensor& tensor) {
  return tensor.name.ends_with("_draw") || tensor.name.ends_with("_augment");
}

/// Row `row` of a tensor in words; empty: none that is shown.
std::string words_of(const NamedTensor& tensor, std::size_t row,
                     const ContactSheet::Classes& all_classes) {
  const TensorView& view = tensor.view;
  const bool whole = is_whole(view.dtype);
  if (view.shape.size() != 1 && !holds_draws(tensor)) return {};
  std::size_t numbers = 1;
  for (std::size_t at = 1; at < view.shape.size(); ++at)
    numbers *= static_cast<std::size_t>(view.shape[at]);
  const auto of = all_classes.find(tensor.name);
  const std::size_t classes = of == all_classes.end() ? 0 : of->second.size();
  std::string text;
  for (std::size_t at = 0; at < numbers; ++at) {
    const double value = number_at(view, row * numbers + at);
    const bool named =
        whole && value >= 0 && value < static_cast<double>(classes);
    text += (at == 0 ? "" : " ") +
            (named ? of->second[static_cast<std::size_t>(value)]
                   : shown(value, whole));
  }
  return text;
}

[[noreturn]] void refuse(const char* code, std::string where, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = code,
                                   .what = "cannot show pictures",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// Picture `row` as RGB.
std::vector<std::uint8_t> rgb_of(const TensorView& view, std::size_t row) {
  const std::size_t at = channels_at(view.shape);
  const bool last = at == 3;
  const auto channels = static_cast<std::size_t>(view.shape[at]);
  const auto area = static_cast<std::size_t>(view.shape[last ? 1 : 2] *
                                             view.shape[last ? 2 : 3]);
  auto number = [&](std::size_t pixel, std::size_t c) {
    const std::size_t within = last ? pixel * channels + c : c * area + pixel;
    return number_at(view, row * area * channels + within);
  };
  double least = 0, most = 255;
  if (view.dtype != Dtype::uint8) {
    least = most = number(0, 0);
    for (std::size_t pixel = 0; pixel < area; ++pixel)
      for (std::size_t c = 0; c < channels; ++c) {
        least = std::min(least, number(pixel, c));
        most = std::max(most, number(pixel, c));
      }
  }
  const double scale = most > least ? 255 / (most - least) : 0;
  std::vector<std::uint8_t> rgb(area * 3);
  for (std::size_t pixel = 0; pixel < area; ++pixel)
    for (std::size_t c = 0; c < 3; ++c)
      rgb[pixel * 3 + c] = static_cast<std::uint8_t>(
          std::lround((number(pixel, channels == 3 ? c : 0) - least) * scale));
  return rgb;
}

}  // namespace

ContactSheet::ContactSheet(const std::vector<NamedTensor>& tensors,
                           const Classes& classes, const Bad& bad) {
  const auto found =
      std::ranges::find_if(tensors, [](const NamedTensor& tensor) {
        return channels_at(tensor.view.shape) != 0;
      });
  if (found == tensors.end())
    refuse("images.show", "the batch", "the batch has no tensor of pictures",
           "add a field \"image\" to the job");
  const TensorView& view = found->view;
  const bool last = channels_at(view.shape) == 3;
  height_ = static_cast<int>(view.shape[last ? 1 : 2]);
  width_ = static_cast<int>(view.shape[last ? 2 : 3]);
  const auto rows = static_cast<std::size_t>(view.shape[0]);
  for (std::size_t row = 0; row < std::min(rows, kMostPictures); ++row) {
    Picture& picture = pictures_.emplace_back();
    picture.rgb = rgb_of(view, row);
    if (const auto wrong = bad.find(row); wrong != bad.end()) {
      picture.label = "bad";
      picture.caption = "bad: " + wrong->second;
      continue;
    }
    for (const NamedTensor& tensor : tensors) {
      const std::string words = words_of(tensor, row, classes);
      if (words.empty()) continue;
      auto add = [](std::string& to, const std::string& more) {
        to += (to.empty() ? "" : ", ") + more;
      };
      add(picture.caption, tensor.name + " " + words);
      if (!holds_draws(tensor)) add(picture.label, words);
    }
  }
}

std::string ContactSheet::png() const {
  const int count = static_cast<int>(pictures_.size());
  const int columns = std::max(1, std::min(count, kColumns));
  const int rows = (count + columns - 1) / columns;
  const SmallLetters letters{.dot = width_ >= kWide ? 2 : 1};
  const bool labelled = std::ranges::any_of(
      pictures_, [](const Picture& one) { return !one.label.empty(); });
  const int cell =
      height_ + kGap + (labelled ? letters.height() + 2 * kGap : 0);
  const int width = columns * (width_ + kGap) + kGap;
  const int height = rows * cell + kGap;
  std::vector<std::uint8_t> sheet(
      static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3,
      255);
  for (int at = 0; at < count; ++at) {
    const int left = at % columns * (width_ + kGap) + kGap;
    const int top = at / columns * cell + kGap;
    const Picture& picture = pictures_[static_cast<std::size_t>(at)];
    const auto row = static_cast<std::size_t>(width_) * 3;
    for (int y = 0; y < height_; ++y)
      std::memcpy(sheet.data() + (static_cast<std::size_t>(top + y) *
                                      static_cast<std::size_t>(width) +
                                  static_cast<std::size_t>(left)) *
                                     3,
                  picture.rgb.data() + static_cast<std::size_t>(y) * row, row);
    letters.draw(picture.label, {.rgb = sheet, .width = width}, left,
                 top + height_ + kGap, width_);
  }
  return png_of(sheet, width, height);
}

std::string ContactSheet::html() const {
  std::string page =
      "<!doctype html><meta charset=utf-8><title>Pictures of a batch</title>"
      "<style>body{font:11px sans-serif}figure{display:inline-block;"
      "margin:4px;vertical-align:top}figcaption{max-width:" +
      std::to_string(width_) + "px}</style>\n";
  for (const Picture& picture : pictures_)
    page += "<figure><img src='data:image/png;base64," +
            base64_of(png_of(picture.rgb, width_, height_)) + "'><figcaption>" +
            escaped(picture.caption) + "</figcaption></figure>\n";
  return page;
}

void ContactSheet::write(const std::filesystem::path& path) const {
  if (path.extension() == ".png") return real_files().write_atomic(path, png());
  if (path.extension() == ".html")
    return real_files().write_atomic(path, html());
  throw Error(ErrorKind::request,
              {.code = "images.sheet",
               .what = "cannot write the contact sheet",
               .where = path.string(),
               .why = "the file name does not end in .png or .html",
               .next = "name a file that ends in .png or .html"});
}

}  // namespace penstock
