#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/image/image.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostSide = 16'384;

Json size_rule() {
  Json number = settings::integer_rule(1, kMostSide, "");
  Json list = settings::rule_of("array", "");
  list["items"] = number;
  list["minItems"] = 2;
  list["maxItems"] = 2;
  Json rule;
  rule["description"] =
      "Height and width of the tensor in pixels, or one number for both";
  rule["anyOf"] = Json(Json::Array{std::move(number), std::move(list)});
  return rule;
}

void read_size(Spec& spec, const SettingSchema& setting, Image& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  auto side = [&](const Json& json) {
    const auto* number = std::get_if<std::int64_t>(&json.value());
    if (number == nullptr || *number < 1 || *number > kMostSide)
      spec.refuse(setting.key, "found " + found->dump(),
                  "write height and width from 1 to " +
                      std::to_string(kMostSide) + ": [224, 224], or 224");
    return static_cast<int>(*number);
  };
  const bool two = found->is_array() && found->array().size() == 2;
  to.height = side(two ? found->array()[0] : *found);
  to.width = side(two ? found->array()[1] : *found);
}

Json show_size(const Image& from) {
  return Json(Json::Array{Json(std::int64_t{from.height}),
                          Json(std::int64_t{from.width})});
}

/// The numbers of a list; refuses anything else.
std::vector<double> numbers_of(Spec& spec, const SettingSchema& setting,
                               const std::string& next) {
  const Json* found = spec.raw(setting.key);
  if (!found->is_array() || found->array().empty() ||
      !std::ranges::all_of(found->array(), &Json::is_number))
    spec.refuse(setting.key, "found " + found->dump(), next);
  std::vector<double> numbers;
  for (const Json& number : found->array()) numbers.push_back(number.number());
  return numbers;
}

Json list_of_numbers(const auto& numbers) {
  Json list(Json::Array{});
  for (double number : numbers) list.push_back(number);
  return list;
}

using Range = std::array<double, 2>;

/// A range of two positive numbers.
void add_range(SettingsTable<Image>& table, const std::string& key,
               Range Image::*member, double most, const std::string& about) {
  Json rule = settings::rule_of("array", about);
  rule["items"] = settings::number_rule(0, most, "");
  rule["minItems"] = 2;
  rule["maxItems"] = 2;
  table.setting(
      key, std::move(rule),
      [=](Spec& spec, const SettingSchema& setting, Image& to) {
        if (spec.raw(setting.key) == nullptr) return;
        const std::string next =
            "write the least and the greatest number, both above 0: [0.08, 1]";
        const std::vector<double> found = numbers_of(spec, setting, next);
        if (found.size() != 2 || found[0] <= 0 || found[0] > found[1] ||
            found[1] > most)
          spec.refuse(setting.key, "found " + spec.raw(setting.key)->dump(),
                      next);
        to.*member = {found[0], found[1]};
      },
      [=](const Image& from) { return list_of_numbers(from.*member); });
}

using Numbers = std::vector<double>;

/// A number for each channel.
void add_channels(SettingsTable<Image>& table, const std::string& key,
                  Numbers Image::*member, const std::string& about) {
  Json rule = settings::rule_of("array", about);
  rule["items"]["type"] = "number";
  rule["minItems"] = 1;
  rule["maxItems"] = 3;
  table.setting(
      key, std::move(rule),
      [=](Spec& spec, const SettingSchema& setting, Image& to) {
        if (spec.raw(setting.key) != nullptr)
          to.*member = numbers_of(
              spec, setting, "write a number from 0 to 1 for each channel");
      },
      [=](const Image& from) {
        return (from.*member).empty() ? Json() : list_of_numbers(from.*member);
      });
}

void check_channels(Spec& section, const Image& image) {
  const std::size_t channels = bytes_of(image.mode);
  if (image.mean.empty() != image.std.empty())
    section.refuse(image.mean.empty() ? "std" : "mean",
                   "one of \"mean\" and \"std\" is missing", "write both");
  if (image.mean.empty()) return;
  if (image.dtype == Dtype::uint8 || image.dtype == Dtype::int64)
    section.refuse("mean", "integer tensors are not normalised",
                   "set \"dtype\": \"float32\"");
  for (const char* key : {"mean", "std"}) {
    const Numbers& of = key == std::string("mean") ? image.mean : image.std;
    if (of.size() != channels)
      section.refuse(key,
                     "found " + std::to_string(of.size()) +
                         " numbers, but there are " + std::to_string(channels) +
                         " channels",
                     "write one number for each channel");
  }
  if (std::ranges::any_of(image.std, [](double one) { return !(one > 0); }))
    section.refuse("std", "found a number that is not above 0",
                   "write the standard deviation of each channel");
}

/// Numbers of classes have no means.
void check_mask(Spec& section, Image& image) {
  const bool whole = image.dtype == Dtype::uint8 || image.dtype == Dtype::int64;
  if (image.mode != PictureMode::index) {
    if (image.dtype == Dtype::int64)
      section.refuse("dtype", "found \"int64\", which only masks can have",
                     "set \"mode\": \"P\", or another dtype");
    return;
  }
  if (!section.has("interpolation"))
    image.interpolation = Interpolation::nearest;
  if (image.interpolation != Interpolation::nearest)
    section.refuse("interpolation", "interpolation would mix classes",
                   "set \"nearest\", or leave it out");
  if (!whole)
    section.refuse("dtype", "classes are integers",
                   "set \"uint8\" or \"int64\"");
}

void check_augments(Spec& section, const Image& image) {
  const std::size_t channels = bytes_of(image.mode);
  for (const Augment& augment : image.augments) {
    const double side = std::min(image.height, image.width);
    for (double size : augment.kernel_size)
      if (std::floor(size / 2) >= side)
        section.refuse("augment",
                       "found a kernel_size of " + Json(size).dump() +
                           ", but the pictures have " + Json(side).dump() +
                           " pixels",
                       "write a size below twice that");
    for (const NumberList* of : {&augment.fill, &augment.value})
      if (of->size() > 1 && of->size() != channels)
        section.refuse("augment",
                       "found " + std::to_string(of->size()) +
                           " numbers, but there are " +
                           std::to_string(channels) + " channels",
                       "write one number, or one for each channel");
  }
}

void check_sizes(Spec& section, Image& image) {
  check_mask(section, image);
  check_channels(section, image);
  check_augments(section, image);
  const int least = std::max(image.height, image.width);
  const bool centres = image.train == Framing::resize_center ||
                       image.val == Framing::resize_center;
  if (centres && image.resize < least) {
    if (section.has("resize"))
      section.refuse("resize",
                     "found " + std::to_string(image.resize) + ", but " +
                         std::to_string(least) +
                         " pixels are cropped from the centre",
                     "write a short side of at least that many pixels");
    image.resize = least;
  }
}

/// Ranges of crops that nothing draws would be taken for augmentation.
void check_crops(Spec& section, Image& image) {
  if (image.train == Framing::random_resized_crop ||
      image.val == Framing::random_resized_crop)
    return;
  const Image plain;
  for (const auto& [key, same] :
       {std::pair("scale", image.scale == plain.scale),
        std::pair("ratio", image.ratio == plain.ratio)})
    if (!same)
      section.refuse(
          key, "the range applies to random crops, and \"train\" makes none",
          std::string("set \"train\": \"random_resized_crop\", or "
                      "leave \"") +
              key + "\" out");
}

/// What a device does is to crop, resize, mirror and normalise pixels, that are
/// kept or that it decodes.
void check_device(Spec& section, Image& image) {
  if (!image.on_device()) return;
  const std::string key = image.decode_on_device ? "decode" : "finish";
  auto refuse = [&](const std::string& why, const std::string& other) {
    section.refuse(key, why, "leave \"" + other + "\" or \"" + key + "\" out");
  };
  if (!image.decode_on_device && !image.store_decoded)
    section.refuse(key, "encoded files are kept, and the host decodes them",
                   "set \"store\": {\"form\": \"decoded\"} or \"decode\": "
                   "\"device\", or leave \"finish\" out");
  if (image.decode_on_device && image.store_decoded)
    refuse("pictures are kept decoded", "store");
  if (image.decode_on_device && image.mode != PictureMode::rgb)
    refuse("a device decodes only pictures in colour", "mode");
  if (image.decode_on_device && image.fast)
    refuse(
        "\"parity\": \"fast\" reduces the precision of JPEG decoding, which "
        "only the host supports",
        "parity");
  if (!image.augments.empty())
    refuse("\"augment\" has " + augments_json(image.augments).dump() +
               ", which only the host does",
           "augment");
  if (image.record_draws) refuse("only the host records draws", "record_draws");
}

/// Where something is done. It decides no byte, or some last bits, so a run may
/// go on with the other one.
void add_place(SettingsTable<Image>& table, const char* key, bool Image::*to,
               const char* about) {
  table
      .setting(
          key, settings::choice_rule({"host", "device"}, about),
          [to](Spec& spec, const SettingSchema& setting, Image& image) {
            if (spec.raw(setting.key) != nullptr)
              image.*to =
                  spec.choice(setting.key, {"host", "device"}) == "device";
          },
          [](const Image&) { return Json(); })
      .last_rule("default", "host");
}

const SettingsTable<Image>& store_settings() {
  static const SettingsTable<Image> table =
      SettingsTable<Image>()
          .choice("form", &Image::store_decoded,
                  {{"encoded", false}, {"decoded", true}},
                  "What is kept of a picture. encoded: the bytes of its file; "
                  "decoded: its pixels, which take more memory and need no "
                  "decoding")
          .integer("max_side", &Image::max_side, 0, kMostSide,
                   "Longer side to which kept pixels are shrunk. 0: they keep "
                   "their size")
          .check([](Spec& section, Image& image) {
            if (image.max_side > 0 && !image.store_decoded)
              section.refuse("max_side", "encoded pictures cannot be shrunk",
                             "set \"form\": \"decoded\"");
          });
  return table;
}

const std::vector<std::pair<std::string, Framing>> kFramings = {
    {"random_resized_crop", Framing::random_resized_crop},
    {"resize_center", Framing::resize_center},
    {"resize", Framing::resize},
    {"none", Framing::none}};

/// Which column, and how its pictures get their size.
void add_framing(SettingsTable<Image>& table) {
  table
      .text("column", &Image::column,
            "Column with the bytes of picture files or, with \"folder\", their "
            "paths")
      .not_empty()
      .text("folder", &Image::folder,
            "Folder that relative paths start from. Default: the column holds "
            "bytes")
      .setting("size", size_rule(), read_size, show_size)
      .choice(
          "mode", &Image::mode,
          {{"RGB", PictureMode::rgb},
           {"L", PictureMode::grey},
           {"P", PictureMode::index}},
          "Colours of a picture. RGB: three channels; L: grey; P: segmentation "
          "masks, the class numbers in a PNG file with a palette or in grey")
      .choice("train", &Image::train, kFramings,
              "How train pictures get their size. random_resized_crop: another "
              "part of the picture in each epoch; resize_center: resized, then "
              "cropped to the centre; resize: resized without cropping; none: "
              "they already have the size")
      .choice("val", &Image::val, kFramings,
              "How validation pictures get their size, as `train`");
  add_range(table, "scale", &Image::scale, 1,
            "Range of the cropped share of the area, for random_resized_crop");
  add_range(table, "ratio", &Image::ratio, 1000,
            "Range of width / height of the crop, for random_resized_crop");
  table
      .integer("resize", &Image::resize, 1, kMostSide,
               "Short side in pixels before the centre crop, for "
               "resize_center. Never less than `size` by default")
      .choice("interpolation", &Image::interpolation,
              {{"bilinear", Interpolation::bilinear},
               {"bicubic", Interpolation::bicubic},
               {"lanczos", Interpolation::lanczos},
               {"nearest", Interpolation::nearest}},
              "How pictures are resized, antialiased as Pillow does")
      .choice("parity", &Image::fast, {{"exact", false}, {"fast", true}},
              "How close the pixels are to Pillow's. exact: the same bytes; "
              "fast: JPEG is decoded with fewer bits, and at a half, a quarter "
              "or an eighth of its size where that is enough, and pictures are "
              "resized with fewer bits");
}

/// What is done to pixels that have their size, and how they are written.
void add_pixels(SettingsTable<Image>& table) {
  table
      .number("flip", &Image::flip, 0, 1,
              "Probability that a train picture is mirrored left to right")
      .setting(
          "augment", augments_schema(),
          [](Spec& spec, const SettingSchema& setting, Image& to) {
            if (const Json* found = spec.raw(setting.key))
              to.augments = parse_augments(*found, spec.path_of(setting.key));
          },
          [](const Image& from) { return augments_json(from.augments); })
      .choice("dtype", &Image::dtype,
              {{"uint8", Dtype::uint8},
               {"int64", Dtype::int64},
               {"float32", Dtype::float32},
               {"bfloat16", Dtype::bfloat16},
               {"float16", Dtype::float16}},
              "Type of the tensor's elements. uint8: 0 to 255; int64: for "
              "masks; others hold 0 to 1, or (value - mean) / std")
      .choice("layout", &Image::channels_last,
              {{"nchw", false}, {"nhwc", true}},
              "Order of the dimensions. nchw: [channels, height, width]; nhwc: "
              "[height, width, channels]");
  add_channels(
      table, "mean", &Image::mean,
      "Mean of each channel, for values from 0 to 1, that is subtracted");
  add_channels(table, "std", &Image::std,
               "Standard deviation of each channel, for values from 0 to 1, to "
               "divide by");
}

SettingsTable<Image> make_settings() {
  SettingsTable<Image> table;
  add_framing(table);
  add_pixels(table);
  table
      .setting(
          "max_pixels",
          settings::integer_rule(1, kMostPixels,
                                 "Greatest number of pixels. A larger picture "
                                 "is a bad row and is not decoded"),
          [](Spec& spec, const SettingSchema& setting, Image& to) {
            if (spec.raw(setting.key) != nullptr)
              to.max_pixels = spec.integer(setting.key, {}, 1, kMostPixels);
          },
          [](const Image& from) {
            return from.max_pixels < kMostPixels ? Json(from.max_pixels)
                                                 : Json();
          })
      .last_rule("default", kMostPixels)
      .boolean("record_draws", &Image::record_draws,
               "Whether to add a tensor NAME_draw with the random crop of each "
               "picture: top, left, height, width, mirrored")
      .section("store", store_settings(),
               "What the cache and the store keep of a picture.");
  add_place(table, "finish", &Image::finish_on_device,
            "Where kept pixels are cropped, resized, mirrored and normalised. "
            "Both give the same bytes");
  add_place(table, "decode", &Image::decode_on_device,
            "Where kept files are decoded and finished. device: JPEG files are "
            "decoded on the GPU by nvJPEG, whose pixels differ slightly");
  table.check(check_sizes)
      .check(check_crops)
      .check(check_device)
      .rule("description",
            "Turns a column of JPEG, PNG, WebP or GIF files into pixels "
            "[channels, height, width].");
  return table;
}

}  // namespace

int Image::most_changes() const {
  int most = 0;
  for (const Augment& augment : augments) most += augment.most_changes();
  return most;
}

const SettingsTable<Image>& image_settings() {
  static const SettingsTable<Image> table =
      SettingsTable<Image>()
          .section("image", make_settings(),
                   "Turns a column of JPEG, PNG, WebP or GIF files into pixels "
                   "[channels, height, width].")
          .required();
  return table;
}

}  // namespace penstock
