#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/bytes.h"
#include "penstock/base/file_stamp.h"
#include "penstock/base/random.h"
#include "penstock/transforms/audio/audio_settings.h"
#include "penstock/transforms/audio/decoder.h"
#include "penstock/transforms/audio/resampler.h"

namespace penstock {

/// A sound as parsed, and stored where it is kept encoded: from when to
/// when, in seconds, then the bytes of the file, or its path, a zero and its
/// size.
struct EncodedClip {
  double start = 0, end = 0;  ///< end 0, which none can be: that of the file
  bool is_path = false;
  std::span<const std::byte> bytes = {};

  static constexpr std::size_t kHeader = 2 * sizeof(double) + 8;
  void append(Bytes& to) const;
  static EncodedClip of(std::span<const std::byte> run);
};

/// Makes waveforms of encoded sounds: decoded, mixed, resampled, cropped or
/// filled up with zeros. Belongs to one thread at a time; keeps its memory.
class ClipReader {
 public:
  /// `opened_ns`: since when files must not have changed (file_clock_ns()), or
  /// every call throws Error(source), files.changed.
  explicit ClipReader(const Audio& audio,
                      std::int64_t opened_ns = file_clock_ns())
      : audio_(audio),
        soxr_(audio.soxr ? soxr_resampler() : nullptr),
        opened_ns_(opened_ns) {}

  /// What of a sound is told without decoding it. What is wrong; empty:
  /// nothing is known to be.
  std::string check(const EncodedClip& clip);
  /// Decodes all of a sound, little by little. What is wrong; empty: nothing.
  std::string check_all(const EncodedClip& clip);
  /// `to` is [channels, samples]. `random` is for a crop at random; none: from
  /// the middle. What is wrong; empty: nothing.
  std::string read(const EncodedClip& clip, std::optional<Random> random,
                   std::span<float> to);

 private:
  struct Part {
    std::int64_t first, frames;  ///< of the file
  };
  std::string open(const EncodedClip& clip, const std::string& path,
                   SoundInfo& info, Part& part);
  std::string decode(std::int64_t first, std::int64_t frames,
                     const std::string& path);
  std::string part_of(const EncodedClip& clip, const SoundInfo& info,
                      Part& part) const;
  bool by_soxr(const SoundInfo& info) const {
    return soxr_ != nullptr && info.rate != audio_.rate;
  }
  std::string fault_of(const SoundInfo& info) const;
  std::string not_finite(const SoundInfo& info, std::int64_t first) const;
  std::int64_t length_of(const SoundInfo& info, const Part& part);
  const Resampler& resampler_from(int rate);
  void mix(const SoundInfo& info, std::size_t channel, std::int64_t lead,
           std::int64_t frames);

  std::string resample(const SoundInfo& info, std::int64_t first,
                       std::int64_t length, std::span<float> to);

  const Audio audio_;
  const ResampleBySoxr soxr_;  // null: as torchaudio
  const std::int64_t opened_ns_;
  std::unique_ptr<SoundDecoder> decoder_;  // made when it is needed
  std::vector<std::pair<int, std::unique_ptr<Resampler>>> resamplers_;
  std::vector<float> decoded_, mixed_, resampled_;
};

}  // namespace penstock
