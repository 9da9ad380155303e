#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace penstock {

/// What the header of a sound file says.
struct SoundInfo {
  std::int64_t frames = 0;  ///< samples of each channel
  int rate = 0;             ///< Hz
  int channels = 0;
};

/// Decodes sound files; belongs to one thread at a time.
class SoundDecoder {
 public:
  virtual ~SoundDecoder() = default;
  /// Opens the bytes of a file, which must live until the next is opened. What
  /// is wrong with it; empty: nothing.
  virtual std::string open(std::span<const std::byte> bytes,
                           SoundInfo& info) = 0;
  virtual std::string open_path(const std::string& path, SoundInfo& info) = 0;
  /// Frames from `first` on, channels beside one another, -1 to 1.
  virtual std::string read(std::int64_t first, std::int64_t frames,
                           float* to) = 0;
};

/// Resamples all samples of a channel at once, in libsoxr's high quality. What
/// is wrong; empty: nothing.
using ResampleBySoxr = std::string (*)(double from_rate, double to_rate,
                                       std::span<const float> from,
                                       std::span<float> to);

/// What the plugin libpenstock_audio.so gives to the program.
struct AudioPart {
  std::unique_ptr<SoundDecoder> (*make_decoder)();
  ResampleBySoxr resample_by_soxr;  ///< null: built without libsoxr
};

/// The one symbol that is looked up in the plugin.
inline constexpr const char* kAudioPartEntry = "penstock_audio_part";

/// Throws Error(transform) that says what to install where the plugin cannot be
/// loaded.
std::unique_ptr<SoundDecoder> make_sound_decoder();
/// The same, and where the plugin was built without libsoxr.
ResampleBySoxr soxr_resampler();

}  // namespace penstock
