#include <algorithm>
#include <cstring>
#include <optional>

#include "penstock/transforms/audio/audio.h"
#include "penstock/transforms/audio/clip.h"
#include "penstock/transforms/audio/mel.h"

namespace penstock {
namespace {

constexpr std::uint64_t kCrop = 0x6372'6f70'7776;  // "cropwv"

/// Goes on from the stored form: decodes, changes the waveform, makes the
/// spectrogram and changes that.
class AudioFinisher final : public FieldFinisher {
 public:
  AudioFinisher(const Audio& audio, bool train)
      : audio_(audio),
        form_(audio.stored_form()),
        draws_crop_(train && audio.crop == Audio::Crop::random),
        split_(static_cast<std::size_t>(std::ranges::count_if(
            audio.augment,
            [](const Augmentation& one) { return !is_of_spectrograms(one); }))),
        waves_(train ? part(0, split_) : std::vector<Augmentation>()),
        spectra_(train ? part(split_, audio.augment.size())
                       : std::vector<Augmentation>(),
                 split_),
        wave_shape_({audio.channels(), audio.samples()}),
        row_shape_(audio.row_shape()),
        reader_(audio) {}

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    rejected_.clear();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      auto* out = reinterpret_cast<float*>(to[0].row(r));
      std::string why = finish_row(rows[r], key, out);
      if (why.empty()) {
        if (audio_.has_mel) spectra_.apply(out, row_shape_, rows[r], key);
        continue;
      }
      std::memset(out, 0, to[0].bytes);
      rejected_.push_back({.row = static_cast<std::int64_t>(r),
                           .place = audio_.column,
                           .why = std::move(why)});
    }
  }
  std::span<const RowFault> rejected() const override { return rejected_; }

 private:
  std::vector<Augmentation> part(std::size_t begin, std::size_t end) const {
    return {audio_.augment.begin() + static_cast<std::ptrdiff_t>(begin),
            audio_.augment.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  std::string finish_row(const StoredRow& row, const DrawKey& key, float* out) {
    const auto elements = static_cast<std::size_t>(row_shape_.elements());
    const auto samples = static_cast<std::size_t>(wave_shape_.elements());
    if (audio_.has_mel) wave_.resize(samples);
    const std::span<float> wave(audio_.has_mel ? wave_.data() : out, samples);
    if (form_ == Audio::Form::samples) {
      std::memcpy(wave.data(), row.tensors, samples * sizeof(float));
    } else {
      std::optional<Random> random;
      if (draws_crop_) random = key.random(row, kCrop);
      std::string why = reader_.read(EncodedClip::of(row.run), random, wave);
      if (!why.empty()) return why;
    }
    waves_.apply(wave.data(), wave_shape_, row, key);
    if (!audio_.has_mel) return {};
    if (mel_ == nullptr) mel_ = std::make_unique<MelSpectrogram>(audio_);
    mel_->run(wave, {out, elements});
    return {};
  }

  const Audio audio_;
  const Audio::Form form_;
  const bool draws_crop_;
  const std::size_t split_;  // augmentations of waveforms, which come first
  Augmenter waves_, spectra_;
  const AugmentShape wave_shape_, row_shape_;
  ClipReader reader_;
  std::unique_ptr<MelSpectrogram> mel_;
  std::vector<float> wave_;
  std::vector<RowFault> rejected_;
};

}  // namespace

std::unique_ptr<FieldFinisher> make_audio_finisher(const Audio& audio,
                                                   bool train) {
  // What is stored is what a batch has, unless something is left to be done.
  const bool done =
      audio.stored_form() == Audio::Form::features ||
      (audio.stored_form() == Audio::Form::samples && !audio.has_mel);
  if (done && (!train || audio.augment.empty())) return nullptr;
  if (done) return make_augment_finisher(audio.augment, audio.row_shape());
  return std::make_unique<AudioFinisher>(audio, train);
}

}  // namespace penstock
