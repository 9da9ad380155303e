#include "penstock/transforms/audio/audio_settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock {
namespace {

constexpr std::int64_t kMostRate = 1'000'000;
constexpr std::int64_t kMostFft = 1 << 16;

SettingsTable<Mel> mel_settings() {
  SettingsTable<Mel> table;
  table
      .integer("n_fft", &Mel::n_fft, 4, kMostFft,
               "Samples of a Fourier transform")
      .integer("win_length", &Mel::win_length, 0, kMostFft,
               "Samples of a window. 0: n_fft")
      .integer("hop_length", &Mel::hop_length, 0, kMostFft,
               "Samples from the start of a window to the start of the next. "
               "0: half of win_length")
      .integer("n_mels", &Mel::n_mels, 1, 4096, "Number of mel bands")
      .number("f_min", &Mel::f_min, 0, kMostRate, "Lowest frequency in Hz")
      .number("f_max", &Mel::f_max, 0, kMostRate,
              "Highest frequency in Hz. 0: half of the rate")
      .choice(
          "power", &Mel::squared, {{"power", true}, {"magnitude", false}},
          "Whether bands hold power or magnitude: torchaudio's power 2 or 1")
      .choice("mel_scale", &Mel::slaney_scale,
              {{"htk", false}, {"slaney", true}},
              "Formula of the mel scale, as torchaudio's mel_scale")
      .choice("norm", &Mel::slaney_norm, {{"none", false}, {"slaney", true}},
              "Weight of the bands. none: each has the peak 1; slaney: each "
              "has the same area")
      .choice("log", &Mel::log,
              {{"db", Mel::Log::decibels},
               {"ln", Mel::Log::natural},
               {"none", Mel::Log::none}},
              "Logarithm of the bands. db: 10 log10(max(power, 1e-10)), or 20 "
              "log10 of magnitudes; ln: log(value + 1e-6)")
      .number("top_db", &Mel::top_db, 0, 1000,
              "Dynamic range of a row in dB: values further below its loudest "
              "are raised to that limit. 0: no limit")
      .integer("n_mfcc", &Mel::n_mfcc, 0, 4096,
               "Number of cepstral coefficients (MFCC) to compute from the "
               "bands. 0: the bands themselves");
  return table;
}

Json mel_rule() {
  Json rule = mel_settings().schema();
  rule["description"] =
      "Computes a mel spectrogram, as torchaudio's, instead of the waveform";
  return rule;
}

void read_mel(Spec& spec, const SettingSchema& setting, Audio& to) {
  if (spec.raw(setting.key) == nullptr) return;
  Spec section = spec.section(setting.key);
  mel_settings().read(section, to.mel);
  section.finish();
  to.has_mel = true;
}

Json show_mel(const Audio& from) {
  return from.has_mel ? mel_settings().shown(from.mel) : Json();
}

const std::vector<std::string> kResamplers = {"torchaudio", "soxr"};

Json resample_rule() {
  return settings::choice_rule(
      kResamplers,
      "Method for sounds of another rate. torchaudio: as its resample(); soxr: "
      "as libsoxr's high quality, applied to the whole row before it is "
      "cropped");
}

void read_resample(Spec& spec, const SettingSchema& setting, Audio& to) {
  if (spec.raw(setting.key) == nullptr) return;
  to.soxr = spec.choice(setting.key, kResamplers) == "soxr";
}

// Nothing by default, so that what earlier versions have kept is still known.
Json show_resample(const Audio& from) {
  return from.soxr ? Json("soxr") : Json();
}

void check_mel(Spec& section, Audio& audio) {
  Mel& mel = audio.mel;
  if (mel.win_length == 0) mel.win_length = mel.n_fft;
  if (mel.hop_length == 0)
    mel.hop_length = std::max<std::int64_t>(1, mel.win_length / 2);
  if (mel.f_max == 0) mel.f_max = static_cast<double>(audio.rate) / 2;
  auto refuse = [&](std::string why, std::string next) {
    section.refuse("mel", std::move(why), std::move(next));
  };
  if (mel.win_length > mel.n_fft)
    refuse("\"win_length\" is longer than \"n_fft\"",
           "set \"n_fft\" to at least \"win_length\"");
  if (mel.f_min >= mel.f_max)
    refuse("\"f_min\" is not below \"f_max\"", "set \"f_min\" below \"f_max\"");
  if (audio.samples() <= mel.n_fft / 2)
    refuse(
        "rows have " + std::to_string(audio.samples()) +
            " samples, too few for padding by reflection of half of \"n_fft\"",
        "use longer rows, or a smaller \"n_fft\"");
  if (mel.n_mfcc > mel.n_mels)
    refuse("\"n_mfcc\" is greater than \"n_mels\"",
           "ask for fewer coefficients");
  if (mel.n_mfcc > 0 && mel.log == Mel::Log::none)
    refuse("cepstral coefficients need a logarithm",
           "set \"log\" to \"db\" or \"ln\"");
}

void check_augment(Spec& section, const Audio& audio) {
  const bool masks = std::ranges::any_of(audio.augment, is_of_spectrograms);
  if (masks && !audio.has_mel)
    section.refuse("augment", "a waveform has no spectrogram to mask",
                   "add \"mel\", or leave \"spec_augment\" out");
  if (!std::ranges::is_partitioned(audio.augment, [](const auto& one) {
        return !is_of_spectrograms(one);
      }))
    section.refuse("augment",
                   "\"spec_augment\" comes before a change of the waveform",
                   "write \"spec_augment\" last");
}

void check_form(Spec& section, const Audio& audio) {
  using Form = Audio::Form;
  const bool random = audio.crop == Audio::Crop::random;
  if (audio.form == Form::features && !audio.has_mel)
    section.refuse("store", "features need \"mel\"", "write \"samples\"");
  if (random && (audio.form == Form::samples || audio.form == Form::features))
    section.refuse("store", "a random crop needs the whole sound",
                   "write \"encoded\", or \"crop\": \"center\"");
  const bool waves = std::ranges::any_of(
      audio.augment, [](const auto& one) { return !is_of_spectrograms(one); });
  if (waves && audio.form == Form::features)
    section.refuse("store",
                   "features are computed after the waveform is changed",
                   "write \"samples\" or \"encoded\"");
}

SettingsTable<Audio> make_settings() {
  SettingsTable<Audio> table;
  table
      .text("column", &Audio::column,
            "Column with the bytes of sound files, or with their paths")
      .not_empty()
      .text("folder", &Audio::folder, "Folder that relative paths start from")
      .text("start", &Audio::start,
            "Column with the time in seconds at which a row begins in its "
            "file. Default: rows begin with their file")
      .text("end", &Audio::end,
            "Column with the time in seconds at which a row ends in its file. "
            "Default: rows end with their file")
      .integer("rate", &Audio::rate, 1, kMostRate,
               "Sampling rate in Hz. Sounds of another rate are resampled")
      .number("seconds", &Audio::seconds, 1e-6, 86400,
              "Length of a row in seconds. Longer sounds are cropped, shorter "
              "ones padded with zeros")
      .required()
      .choice("channels", &Audio::stereo, {{"mono", false}, {"stereo", true}},
              "Channels of a row. mono: the mean of all channels")
      .choice("crop", &Audio::crop,
              {{"center", Audio::Crop::center},
               {"start", Audio::Crop::start},
               {"random", Audio::Crop::random}},
              "Which part of a longer sound is kept. random: another part in "
              "each epoch for train rows, the middle for others")
      .setting("resample", resample_rule(), read_resample, show_resample)
      .setting("mel", mel_rule(), read_mel, show_mel)
      .choice("store", &Audio::form,
              {{"auto", Audio::Form::automatic},
               {"encoded", Audio::Form::encoded},
               {"samples", Audio::Form::samples},
               {"features", Audio::Form::features}},
              "What is kept of a row. encoded: the file; samples: the "
              "waveform; features: the spectrogram; auto: the latest of these "
              "that is the same in every epoch");
  add_augment(table, &Audio::augment);
  return table.check([](Spec& section, Audio& audio) {
    if (audio.samples() < 1 || audio.samples() > 1 << 28)
      section.refuse("seconds",
                     "found " + std::to_string(audio.samples()) + " samples",
                     "a row has 1 to 2^28");
    if (audio.has_mel) check_mel(section, audio);
    check_augment(section, audio);
    check_form(section, audio);
  });
}

}  // namespace

const SettingsTable<Audio>& audio_settings() {
  static const SettingsTable<Audio> table =
      SettingsTable<Audio>()
          .section("audio", make_settings(),
                   "Turns a column of WAV, FLAC, OGG or MP3 files into "
                   "waveforms or spectrograms.")
          .required();
  return table;
}

std::int64_t Audio::samples() const {
  return static_cast<std::int64_t>(
      std::nearbyint(seconds * static_cast<double>(rate)));
}

std::int64_t Audio::frames() const {
  // Half of a frame is reflected at either end; of odd frames that is one less.
  return 1 + (samples() - mel.n_fft % 2) / mel.hop_length;
}

Shape Audio::row_shape() const {
  if (!has_mel) return {channels(), samples()};
  return {channels(), mel.n_mfcc > 0 ? mel.n_mfcc : mel.n_mels, frames()};
}

Audio::Form Audio::stored_form() const {
  if (form != Form::automatic) return form;
  if (crop == Crop::random) return Form::encoded;
  const bool waves = std::ranges::any_of(
      augment, [](const auto& one) { return !is_of_spectrograms(one); });
  return has_mel && !waves ? Form::features : Form::samples;
}

}  // namespace penstock
