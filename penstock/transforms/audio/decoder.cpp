#include "penstock/transforms/audio/decoder.h"

#include "penstock/base/plugin.h"

namespace penstock {

std::unique_ptr<SoundDecoder> make_sound_decoder() {
  static const AudioPart& part = load_plugin<AudioPart>(
      {.library = "libpenstock_audio.so",
       .entry = kAudioPartEntry,
       .shown = "the plugin that decodes sound",
       .kind = ErrorKind::transform,
       .code = "audio",
       .install = "install libsndfile1 (Debian, Ubuntu: apt-get install "
                  "libsndfile1); a build from source needs libsndfile1-dev"},
      plugin_folders());
  return part.make_decoder();
}

}  // namespace penstock
