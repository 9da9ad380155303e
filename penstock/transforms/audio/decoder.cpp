#include "penstock/transforms/audio/decoder.h"

#include "penstock/base/error.h"
#include "penstock/base/plugin.h"

namespace penstock {
namespace {

const AudioPart& audio_part() {
  static const AudioPart& part = load_plugin<AudioPart>(
      {.library = "libpenstock_audio.so",
       .entry = kAudioPartEntry,
       .shown = "the plugin that decodes sound",
       .kind = ErrorKind::transform,
       .code = "audio",
       .install = "install libsndfile1 (Debian, Ubuntu: apt-get install "
                  "libsndfile1); a build from source needs libsndfile1-dev"},
      plugin_folders());
  return part;
}

}  // namespace

std::unique_ptr<SoundDecoder> make_sound_decoder() {
  return audio_part().make_decoder();
}

ResampleBySoxr soxr_resampler() {
  if (audio_part().resample_by_soxr != nullptr)
    return audio_part().resample_by_soxr;
  throw Error(ErrorKind::transform,
              {.code = "audio.no_soxr",
               .what = "cannot resample sounds",
               .where = "\"resample\": \"soxr\"",
               .why = "the plugin that decodes sound was built without libsoxr",
               .next = "install libsoxr-dev and build again, or leave "
                       "\"resample\" out for torchaudio's method"});
}

}  // namespace penstock
