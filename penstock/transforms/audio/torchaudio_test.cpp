// Rows of the field kind `audio` against those of torchaudio 2.11.0, which
// tests/data/sound/make.py made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "penstock/transforms/audio/clip.h"
#include "penstock/transforms/audio/mel.h"
#include "penstock/transforms/audio/test_sounds.h"

namespace penstock {
namespace {

struct Golden {
  std::string name, file;
  Audio audio;
  std::vector<float> values;
};

std::vector<Golden> all_golden() {
  const std::string bytes = read_sound("golden.f32");
  std::vector<Golden> all;
  const Json golden_json = Json::parse(read_sound("golden.json"), "golden");
  for (const Json& one : golden_json.array()) {
    Golden golden{.name = one.find("name")->string(),
                  .file = one.find("file")->string(),
                  .audio = audio_of(one.find("settings")->dump()),
                  .values = {}};
    std::int64_t count = 1;
    for (const Json& size : one.find("shape")->array())
      count *= std::get<std::int64_t>(size.value());
    golden.values.resize(static_cast<std::size_t>(count));
    const auto begin = std::get<std::int64_t>(one.find("begin")->value());
    std::memcpy(golden.values.data(),
                bytes.data() + static_cast<std::size_t>(begin) * sizeof(float),
                golden.values.size() * sizeof(float));
    all.push_back(std::move(golden));
  }
  return all;
}

std::vector<float> row_of(const Golden& golden, const lanes::Code& code) {
  const std::string file = read_sound(golden.file);
  const Audio& audio = golden.audio;
  std::vector<float> wave(
      static_cast<std::size_t>(audio.channels() * audio.samples()));
  ClipReader reader(audio);
  EncodedClip clip;
  clip.bytes = std::as_bytes(std::span(file));
  EXPECT_EQ(reader.read(clip, std::nullopt, wave), "");
  if (!audio.has_mel) return wave;
  std::vector<float> row(
      static_cast<std::size_t>(elements_of(audio.row_shape())));
  MelSpectrogram(audio, code).run(wave, row);
  return row;
}

TEST(Audio, RowsAreThoseOfTorchaudio) {
  const std::vector<Golden> all = all_golden();
  ASSERT_GE(all.size(), 25u);
  for (const Golden& golden : all) {
    SCOPED_TRACE(golden.name);
    const std::vector<float> row = row_of(golden, lanes::best());
    ASSERT_EQ(row.size(), golden.values.size());
    const Audio& audio = golden.audio;
    const bool power = audio.has_mel && audio.mel.log == Mel::Log::none;
    double most = 0, worst = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto expected = static_cast<double>(golden.values[i]);
      const double apart = std::fabs(static_cast<double>(row[i]) - expected);
      // Powers relative to themselves; decibels, coefficients and samples have
      // zeros in between.
      worst =
          std::max(worst, power && expected != 0 ? apart / expected : apart);
      most = std::max(most, std::fabs(expected));
    }
    const bool decibels = audio.has_mel && audio.mel.n_mfcc == 0 && !power;
    // 5e-5 dB are 1.15e-5 of a power.
    EXPECT_LE(worst, power ? 1e-5 : decibels ? 5e-5 : most * 1e-6);
  }
}

/// The samples that soxr's own package makes (make_soxr.py).
TEST(Audio, IsResampledBySoxrWhereAJobNamesIt) {
  try {
    soxr_resampler();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "audio.no_soxr");
    GTEST_SKIP() << "built without libsoxr";
  }
  const std::string bytes = read_sound("soxr.f32");
  std::vector<float> expected(bytes.size() / sizeof(float));
  std::memcpy(expected.data(), bytes.data(), bytes.size());
  std::size_t at = 0;
  for (const char* file : {"at_44100.wav", "at_8000.wav"}) {
    SCOPED_TRACE(file);
    Golden golden{.name = file,
                  .file = file,
                  .audio = audio_of(R"({"seconds": 0.06, "resample": "soxr"})"),
                  .values = {}};
    const std::vector<float> row = row_of(golden, lanes::best());
    ASSERT_LE(at + row.size(), expected.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      ASSERT_NEAR(row[i], expected[at + i], 1e-6) << i;
    // A crop is one of the whole sound, resampled.
    golden.audio = audio_of(R"({"seconds": 0.02, "resample": "soxr"})");
    const std::vector<float> middle = row_of(golden, lanes::best());
    for (std::size_t i = 0; i < middle.size(); ++i)
      ASSERT_EQ(middle[i], row[(row.size() - middle.size()) / 2 + i]) << i;
    at += row.size();
  }
  EXPECT_EQ(at, expected.size());
}

TEST(Audio, EveryProcessorMakesTheSameNumbers) {
  if (lanes::avx2() == nullptr) GTEST_SKIP() << "no AVX2";
  for (const Golden& golden : all_golden()) {
    const auto plain = row_of(golden, lanes::plain());
    for (const lanes::Code* code : {lanes::avx2(), lanes::avx512()}) {
      if (code == nullptr) continue;
      ASSERT_EQ(plain, row_of(golden, *code))
          << golden.name << ", " << code->width << " frames at a time";
    }
  }
}

}  // namespace
}  // namespace penstock
