#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/aligned.h"
#include "penstock/transforms/audio/audio_settings.h"
#include "penstock/transforms/audio/lanes.h"

namespace penstock {

/// Makes spectrograms of waveforms of one length: see Mel. Belongs to one
/// thread at a time; keeps its memory.
class MelSpectrogram {
 public:
  explicit MelSpectrogram(const Audio& audio,
                          const lanes::Code& code = lanes::best());

  /// `wave` is [channels, samples], `to` Audio::row_shape().
  void run(std::span<const float> wave, std::span<float> to);

 private:
  void make_window();
  void plan_transform();
  void make_bands();
  void make_coefficients();
  void pad(std::span<const float> channel);
  void finish_decibels(std::span<float> decibels) const;

  const Audio audio_;
  const Mel mel_;
  const lanes::Code& code_;
  const std::size_t n_fft_, bins_;
  std::vector<double> window_, unpack_, weights_;
  std::vector<float> coefficients_;
  std::vector<std::vector<double>> factors_;  // of the steps
  std::vector<lanes::FftStep> steps_;
  std::vector<std::int32_t> firsts_, counts_;
  lanes::Spectrogram spectrogram_{};
  std::vector<float> padded_, bands_;
  AlignedBytes scratch_;
};

}  // namespace penstock
