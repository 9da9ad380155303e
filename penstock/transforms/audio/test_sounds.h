#pragma once

#include <fstream>
#include <string>

#include "penstock/base/json.h"
#include "penstock/transforms/audio/audio.h"

/// Sounds and settings for tests.
namespace penstock {

inline std::string read_sound(const std::string& name) {
  std::ifstream file(std::string(PENSTOCK_TEST_DATA) + "/sound/" + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What the section of a field says.
inline Audio audio_of(const std::string& settings) {
  Json section(Json::Object{});
  section["audio"] = Json::parse(settings, "test");
  Spec spec(section, "audio");
  Audio audio;
  audio_settings().read(spec, audio);
  spec.finish();
  return audio;
}

}  // namespace penstock
