#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// Masks of a spectrogram [..., frequencies, times], and a warp of its time
/// (Park et al., "SpecAugment: A Simple Data Augmentation Method for Automatic
/// Speech Recognition", 2019). A mask has 0 to `width` columns or rows, and all
/// such places and widths are equally likely.
struct SpecAugment {
  std::int64_t time_masks = 0, time_width = 0;
  std::int64_t frequency_masks = 0, frequency_width = 0;
  /// A point of time moves by at most so many columns, and what is on either
  /// side of it is stretched or squeezed, by linear interpolation.
  std::int64_t time_warp = 0;
  double value = 0;  ///< what stands in masks
};

/// Normal noise, so that 10 log10 of the power of the row through that of the
/// noise is drawn from [least, most].
struct Noise {
  double least = 10, most = 40;  ///< dB
  double probability = 1;
};

/// All values times a factor, drawn from [least, most] dB.
struct Gain {
  double least = -6, most = 6;
  double probability = 1;
};

/// Values move along the last dimension by at most this part of it; what moves
/// out comes in at the other end, or zeros do.
struct TimeShift {
  double most = 0.1;
  bool wraps = true;
  double probability = 1;
};

using Augmentation = std::variant<SpecAugment, Noise, Gain, TimeShift>;

/// True for what changes spectrograms, not waveforms.
inline bool is_of_spectrograms(const Augmentation& one) {
  return std::holds_alternative<SpecAugment>(one);
}

/// A row as augmentations see it.
struct AugmentShape {
  std::int64_t channels = 1;  ///< all dimensions but the last two, multiplied
  std::int64_t frequencies = 1;
  std::int64_t times = 1;

  explicit AugmentShape(const Shape& row);
  /// Of `times` values each, one behind the other.
  std::int64_t lines() const { return channels * frequencies; }
  std::int64_t elements() const { return lines() * times; }
};

/// The numbers of augmentation `at` of a field's list, of one row.
inline Random draws_of(const DrawKey& key, const StoredRow& row,
                       std::size_t at) {
  constexpr std::uint64_t kAugment = 0x6175676d656e74;  // "augment"
  return key.random(row, kAugment + at);
}

/// Where a mask begins and how wide it is.
struct MaskPlace {
  std::int64_t begin, width;
};

inline MaskPlace draw_mask(Random& random, std::int64_t most,
                           std::int64_t size) {
  const auto width = static_cast<std::int64_t>(
      random.below(static_cast<std::uint64_t>(std::min(most, size)) + 1));
  const auto begin = static_cast<std::int64_t>(
      random.below(static_cast<std::uint64_t>(size - width) + 1));
  return {begin, width};
}

/// Calls `time` and `frequency` with the masks of a row, as they are drawn.
template <class Time, class Frequency>
void draw_masks(const SpecAugment& of, const AugmentShape& shape,
                Random& random, Time time, Frequency frequency) {
  for (std::int64_t m = 0; m < of.time_masks; ++m)
    time(draw_mask(random, of.time_width, shape.times));
  for (std::int64_t m = 0; m < of.frequency_masks; ++m)
    frequency(draw_mask(random, of.frequency_width, shape.frequencies));
}

/// What a row is multiplied with; nullopt: it stays unchanged.
std::optional<float> drawn_factor(const Gain& of, Random random);
/// The columns to the right by which a row of so many times moves.
std::int64_t drawn_shift(const TimeShift& of, std::int64_t times,
                         Random random);

/// Changes rows of float32 in place. What is drawn depends on the key, the row
/// and the place of an augmentation in the list alone. Belongs to one thread.
class Augmenter {
 public:
  /// `first` is the place of the first of `list` in the whole list of a field.
  explicit Augmenter(std::vector<Augmentation> list, std::size_t first = 0)
      : list_(std::move(list)), first_(first) {}

  void apply(float* values, const AugmentShape& shape, const StoredRow& row,
             const DrawKey& key) {
    apply(std::span(&row, 1), 0, 1, key, shape,
          {.data = reinterpret_cast<std::byte*>(values)});
  }
  /// Copies rows to their places, and changes them there.
  void copy(std::span<const StoredRow> rows, DrawKey key,
            const AugmentShape& shape, const TensorPlace& to);

 private:
  /// Rows `first` to `end`, for which so many of the list are `done`.
  void apply(std::span<const StoredRow> rows, std::size_t first,
             std::size_t end, DrawKey key, const AugmentShape& shape,
             const TensorPlace& to, std::size_t done = 0);
  const SpecAugment* masks_of_copies(const AugmentShape& shape) const;
  void copy_masked(const SpecAugment& of, std::span<const StoredRow> rows,
                   DrawKey key, const AugmentShape& shape,
                   const TensorPlace& to, std::size_t place);
  void run(const SpecAugment& of, float* values, const AugmentShape& shape,
           Random random);
  void run(const Noise& of, float* values, const AugmentShape& shape,
           Random random);
  void run(const Gain& of, float* values, const AugmentShape& shape,
           Random random);
  void run(const TimeShift& of, float* values, const AugmentShape& shape,
           Random random);
  void warp(std::int64_t most, float* values, const AugmentShape& shape,
            Random& random);

  const std::vector<Augmentation> list_;
  const std::size_t first_;
  std::vector<float> line_;  // scratch, as is:
  std::vector<MaskPlace> masks_;
};

/// Copies rows whose stored form is one tensor of float32, and changes them; so
/// does a device, but where a field has noise or a warp of time.
std::unique_ptr<FieldFinisher> make_augment_finisher(
    const std::vector<Augmentation>& list, const Shape& row);

/// The setting `augment`: a list of objects with one key each.
Json augment_rule();
std::vector<Augmentation> read_augment(Spec& spec,
                                       const SettingSchema& setting);
Json show_augment(const std::vector<Augmentation>& list);

/// Adds it to the settings of a field.
template <class T>
void add_augment(SettingsTable<T>& table,
                 std::vector<Augmentation> T::*member) {
  table.setting(
      "augment", augment_rule(),
      [member](Spec& spec, const SettingSchema& setting, T& to) {
        to.*member = read_augment(spec, setting);
      },
      [member](const T& from) { return show_augment(from.*member); });
}

}  // namespace penstock
