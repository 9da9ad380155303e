#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/base/tensor.h"
#include "penstock/transforms/augment/augment.h"

namespace penstock {

/// A mel spectrogram, with the parameters and results of
/// torchaudio.transforms.MelSpectrogram, AmplitudeToDB and MFCC (2.11): Hann
/// windows, centred, reflected at the ends.
struct Mel {
  std::int64_t n_fft = 400;
  std::int64_t win_length = 0;  ///< 0: n_fft
  std::int64_t hop_length = 0;  ///< 0: half of win_length
  std::int64_t n_mels = 128;
  double f_min = 0, f_max = 0;  ///< Hz; f_max 0: half of the rate
  bool squared = true;          ///< power 2; else the magnitude
  bool slaney_scale = false;    ///< else HTK's
  bool slaney_norm = false;
  enum class Log : std::uint8_t { none, decibels, natural };
  Log log = Log::decibels;
  double top_db = 80;       ///< below the loudest of a row; 0: no limit
  std::int64_t n_mfcc = 0;  ///< above 0: so many cepstral coefficients

  /// Decibels are 20 log10; else 10, also those that coefficients are made of.
  bool of_amplitudes() const {
    return log == Log::decibels && !squared && n_mfcc == 0;
  }
};

/// A column of sound files as WAV, FLAC, OGG or MP3, or of their paths.
struct Audio {
  std::string column = "audio";
  std::string start, end;  ///< columns of seconds; empty: all of a file
  std::string folder;      ///< what paths are relative to
  std::int64_t rate = 16'000;
  double seconds = 0;  ///< of each row: cropped, or filled up with zeros
  bool stereo = false;
  enum class Crop : std::uint8_t { start, center, random };
  Crop crop = Crop::center;  ///< random: of the train side, else center
  bool soxr = false;         ///< resampled by libsoxr; else as torchaudio does
  bool has_mel = false;
  Mel mel;
  enum class Form : std::uint8_t { automatic, encoded, samples, features };
  Form form = Form::automatic;
  std::vector<Augmentation> augment;

  std::int64_t channels() const { return stereo ? 2 : 1; }
  /// Of a row, in each channel.
  std::int64_t samples() const;
  std::int64_t frames() const;  ///< of its spectrogram
  /// [channels, samples], [channels, mels or coefficients, frames].
  Shape row_shape() const;
  /// What is stored, where that is left to us.
  Form stored_form() const;
};

const SettingsTable<Audio>& audio_settings();

}  // namespace penstock
