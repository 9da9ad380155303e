#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "penstock/transforms/image/augment/augment.h"

namespace penstock {
namespace {

/// As torch draws: numbers of float32.
double between(Random& random, double low, double high) {
  return static_cast<float>(low + (high - low) * random.uniform());
}
/// As Python rounds.
double whole(double value) { return std::nearbyint(value); }

std::array<std::uint8_t, 3> fill_of(const Augment& augment) {
  std::array<std::uint8_t, 3> fill{};
  for (std::size_t c = 0; c < fill.size(); ++c)
    fill[c] = static_cast<std::uint8_t>(
        augment.fill[augment.fill.size() == 1 ? 0 : c]);
  return fill;
}

/// What one entry does to one picture.
class Drawing {
 public:
  Drawing(const Augment& augment, int width, int height, Random& random,
          std::vector<PixelChange>& out)
      : augment_(augment),
        width_(width),
        height_(height),
        random_(random),
        out_(out) {}

  void draw() {
    if (augment_.p < 1 && !(random_.uniform() < augment_.p)) return;
    switch (augment_.kind) {
      case AugmentKind::rotation:
        return add(Change::rotate, {drawn(augment_.degrees)});
      case AugmentKind::affine:
        return affine();
      case AugmentKind::color_jitter:
        return jitter();
      case AugmentKind::rand_augment:
        for (int op = 0; op < augment_.num_ops; ++op)
          automatic(augment_.magnitude);
        return;
      case AugmentKind::trivial_augment_wide:
        return automatic(-1);
      case AugmentKind::gaussian_blur:
        return blur();
      case AugmentKind::random_erasing:
        return erase();
      default:
        return simple();
    }
  }

 private:
  void add(Change change, std::array<double, 7> numbers) {
    out_.push_back({.change = change,
                    .numbers = numbers,
                    .interpolation = augment_.interpolation,
                    .fill = fill_of(augment_)});
  }
  double drawn(const NumberList& range) {
    return between(random_, range[0], range[1]);
  }

  void simple() {
    switch (augment_.kind) {
      case AugmentKind::adjust_sharpness:
        return add(Change::sharpness, {augment_.factor});
      case AugmentKind::auto_contrast:
        return add(Change::auto_contrast, {});
      case AugmentKind::equalize:
        return add(Change::equalize, {});
      case AugmentKind::grayscale:
        return add(Change::grey, {});
      case AugmentKind::invert:
        return add(Change::invert, {});
      case AugmentKind::posterize:
        return add(Change::posterize, {static_cast<double>(augment_.bits)});
      case AugmentKind::solarize:
        return add(Change::solarize, {augment_.threshold});
      default:
        return add(Change::flip_vertically, {});
    }
  }

  void affine() {
    std::array<double, 7> numbers{};
    numbers[0] = drawn(augment_.degrees);
    if (!augment_.translate.empty()) {
      const double right = augment_.translate[0] * width_;
      const double down = augment_.translate[1] * height_;
      numbers[1] = whole(between(random_, -right, right));
      numbers[2] = whole(between(random_, -down, down));
    }
    numbers[3] = augment_.scale.empty() ? 1 : drawn(augment_.scale);
    if (augment_.shear.size() >= 2)
      numbers[4] = between(random_, augment_.shear[0], augment_.shear[1]);
    if (augment_.shear.size() == 4)
      numbers[5] = between(random_, augment_.shear[2], augment_.shear[3]);
    add(Change::affine, numbers);
  }

  // In an order that is drawn, too.
  void jitter() {
    std::array<std::pair<Change, const NumberList*>, 4> all = {
        {{Change::brightness, &augment_.brightness},
         {Change::contrast, &augment_.contrast},
         {Change::saturation, &augment_.saturation},
         {Change::hue, &augment_.hue}}};
    for (std::size_t left = all.size(); left > 1; --left)
      std::swap(all[left - 1], all[random_.below(left)]);
    for (const auto& [change, range] : all)
      if (!range->empty()) add(change, {drawn(*range)});
  }

  void blur() {
    const double sigma = drawn(augment_.sigma);
    const NumberList& size = augment_.kernel_size;
    add(Change::blur, {size[0], size[1], sigma, sigma});
  }

  // Zhong et al. (2017), "Random Erasing Data Augmentation", with torchvision's
  // details: the share of the area is uniform, the ratio of the sides is
  // uniform in its logarithm, and after ten rectangles that do not fit nothing
  // is erased.
  void erase() {
    constexpr int kAttempts = 10;
    const double area = static_cast<double>(width_) * height_;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double part = area * drawn(augment_.scale);
      const double ratio = std::exp(between(
          random_, std::log(augment_.ratio[0]), std::log(augment_.ratio[1])));
      const double h = whole(std::sqrt(part * ratio));
      const double w = whole(std::sqrt(part / ratio));
      if (h < 1 || w < 1 || !(h < height_ && w < width_)) continue;
      auto place = [&](double room) {
        return static_cast<double>(
            random_.below(static_cast<std::uint64_t>(room) + 1));
      };
      const double top = place(height_ - h);
      return add(Change::erase, {top, place(width_ - w), h, w});
    }
  }

  void automatic(int magnitude);

  const Augment& augment_;
  const int width_, height_;
  Random& random_;
  std::vector<PixelChange>& out_;
};

/// The changes of RandAugment and TrivialAugmentWide, in torchvision's order,
/// and the numbers that they end with.
struct Automatic {
  double rand_end, trivial_end;
  bool is_signed;
};
constexpr std::array<Automatic, 14> kAutomatic = {
    {{0, 0, false},              // Identity
     {0.3, 0.99, true},          // ShearX
     {0.3, 0.99, true},          // ShearY
     {150.0 / 331.0, 32, true},  // TranslateX
     {150.0 / 331.0, 32, true},  // TranslateY
     {30, 135, true},            // Rotate
     {0.9, 0.99, true},          // Brightness
     {0.9, 0.99, true},          // Color
     {0.9, 0.99, true},          // Contrast
     {0.9, 0.99, true},          // Sharpness
     {4, 6, false},              // Posterize
     {0, 0, false},              // Solarize
     {0, 0, false},              // AutoContrast
     {0, 0, false}}};            // Equalize

/// torch.linspace(start, end, bins)[place], in float32, multiplied and added in
/// one step.
double linspace(double start, double end, int bins, int place) {
  const auto first = static_cast<float>(start), last = static_cast<float>(end);
  if (bins == 1) return first;
  const double step = (last - first) / static_cast<float>(bins - 1);
  return static_cast<float>(place < bins / 2
                                ? first + step * place
                                : last - step * (bins - place - 1));
}

// `magnitude` below 0: drawn.
void Drawing::automatic(int magnitude) {
  const std::size_t change = random_.below(kAutomatic.size());
  const int bins = augment_.num_magnitude_bins;
  const int place =
      magnitude >= 0
          ? magnitude
          : static_cast<int>(random_.below(static_cast<std::uint64_t>(bins)));
  double number =
      augment_magnitude(augment_.kind, change, bins, place, width_, height_);
  if (kAutomatic[change].is_signed && random_.uniform() <= 0.5)
    number = -number;
  const double shear = std::atan(number) * (180.0 / std::numbers::pi);
  switch (change) {
    case 0:
      return;
    case 1:
      return add(Change::affine, {0, 0, 0, 1, shear, 0, 1});
    case 2:
      return add(Change::affine, {0, 0, 0, 1, 0, shear, 1});
    case 3:
      return add(Change::affine, {0, std::trunc(number), 0, 1, 0, 0, 0});
    case 4:
      return add(Change::affine, {0, 0, std::trunc(number), 1, 0, 0, 0});
    case 5:
      return add(Change::rotate, {number});
    case 6:
      return add(Change::brightness, {1 + number});
    case 7:
      return add(Change::saturation, {1 + number});
    case 8:
      return add(Change::contrast, {1 + number});
    case 9:
      return add(Change::sharpness, {1 + number});
    case 10:
      return add(Change::posterize, {number});
    case 11:
      return add(Change::solarize, {255 * number});
    case 12:
      return add(Change::auto_contrast, {});
    default:
      return add(Change::equalize, {});
  }
}

}  // namespace

// RandAugment (Cubuk et al. 2019) has one magnitude for all changes, and
// TrivialAugment (Mueller and Hutter 2021) draws one for each. Both divide the
// way to the end into `bins`; translations of RandAugment are shares of the
// picture's sides, those of TrivialAugment are pixels.
double augment_magnitude(AugmentKind kind, std::size_t change, int bins,
                         int place, int width, int height) {
  constexpr std::size_t kTranslateX = 3, kTranslateY = 4, kPosterize = 10,
                        kSolarize = 11;
  const bool rand = kind == AugmentKind::rand_augment;
  const Automatic& of = kAutomatic[change];
  double end = rand ? of.rand_end : of.trivial_end;
  if (rand && change == kTranslateX) end = 150.0 / 331.0 * width;
  if (rand && change == kTranslateY) end = 150.0 / 331.0 * height;
  if (change == kSolarize) return linspace(1, 0, bins, place);
  if (change == kPosterize) {
    const auto step = static_cast<float>((bins - 1) / end);
    return 8 - whole(static_cast<double>(static_cast<float>(place) / step));
  }
  return linspace(0, end, bins, place);
}

void draw_changes(const std::vector<Augment>& augments, int width, int height,
                  Random random, std::vector<PixelChange>& changes) {
  changes.clear();
  for (std::size_t entry = 0; entry < augments.size(); ++entry) {
    const std::size_t before = changes.size();
    Drawing(augments[entry], width, height, random, changes).draw();
    for (std::size_t at = before; at < changes.size(); ++at)
      changes[at].entry = entry;
  }
}

}  // namespace penstock
