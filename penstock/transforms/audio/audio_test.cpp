// The field kind `audio`: what it reads, keeps and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <set>

#include "penstock/base/error.h"
#include "penstock/transforms/audio/test_sounds.h"

// libsndfile 1.2 forgets what libvorbis allocated for a damaged header.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvorbis.so\n";
}

namespace penstock {
namespace {

using testing::HasSubstr;

/// Sounds through parser, encoder and finisher.
struct SoundRun {
  explicit SoundRun(const std::string& settings, bool train = true)
      : kind(make_audio("x", audio_of(settings))), train(train) {}

  std::vector<float> row(const std::string& bytes, bool is_path = false,
                         std::int64_t sample = 0, double start = -1,
                         double end = -1) {
    Block block;
    block.rows = 1;
    Column sound{.type = is_path ? ColumnType::text : ColumnType::binary};
    sound.append_text(bytes);
    block.columns.push_back(std::move(sound));
    for (double seconds : {start, end}) {
      Column column{.type = ColumnType::float64};
      if (seconds < 0)
        column.append_null();
      else
        column.append_float64(seconds);
      block.columns.push_back(std::move(column));
    }
    FieldColumns columns;
    columns.at = {0, 1, 2};
    columns.types = {block.columns[0].type, ColumnType::float64,
                     ColumnType::float64};
    columns.info.resize(3);
    const auto bound = kind->bind(columns);
    Values parsed;
    Faults faults;
    bound->parser()->parse(block, parsed, faults);
    why.clear();
    parsed_as_bad = !faults.rows.empty();
    if (parsed_as_bad) return fail(faults.rows[0]);
    const StoredForm stored = kind->facts().stored;
    std::vector<std::byte> tensors(
        stored.tensors.empty() ? 0 : stored.tensors[0].bytes);
    Values runs;
    const ValueRow row = parsed.row(0);
    bound->encoder(Json(), "")
        ->encode(
            std::span(&row, 1),
            {.data = tensors.data(), .stride = tensors.size(), .runs = &runs},
            faults);
    if (!faults.rows.empty()) return fail(faults.rows[0]);
    StoredRow from{.tensors = tensors.data(),
                   .run = runs.rows() == 0 ? ValueRow() : runs.row(0)};
    from.range.sample = sample;
    std::vector<float> out(static_cast<std::size_t>(
        elements_of(kind->facts().outputs[0].row_shape)));
    const auto finisher = kind->finisher(train);
    if (finisher == nullptr) {
      std::memcpy(out.data(), tensors.data(), tensors.size());
      return out;
    }
    const TensorPlace place{.data = reinterpret_cast<std::byte*>(out.data()),
                            .bytes = out.size() * sizeof(float)};
    finisher->finish(std::span(&from, 1), {.seed = 5}, std::span(&place, 1));
    if (!finisher->rejected().empty()) return fail(finisher->rejected()[0]);
    return out;
  }
  std::vector<float> fail(const RowFault& fault) {
    why = fault.place + " " + fault.why;
    return {};
  }

  std::shared_ptr<const FieldKind> kind;
  const bool train;
  std::string why;
  bool parsed_as_bad = false;  ///< by the parser, before it is decoded
};

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, power = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i] - b[i]), 2);
    power += std::pow(static_cast<double>(b[i]), 2);
  }
  return 10 * std::log10(power / error);  // dB
}

TEST(Audio, ByDefaultNothingIsDrawn) {
  const std::string sound = read_sound("mono.wav");
  for (const std::string settings :
       {R"({"seconds": 0.1})", R"({"seconds": 0.1, "mel": {"n_mels": 20}})"}) {
    const auto held_out = SoundRun(settings, false).row(sound);
    EXPECT_FALSE(held_out.empty());
    for (std::int64_t sample = 0; sample < 20; ++sample)
      EXPECT_EQ(SoundRun(settings, true).row(sound, false, sample), held_out)
          << settings;
  }
}

TEST(Audio, LossyFilesSoundAsWhatTheyWereMadeOf) {
  SoundRun run(R"({"seconds": 0.25})");
  const auto exact = run.row(read_sound("mono.wav"));
  EXPECT_GT(apart(run.row(read_sound("lossy.ogg")), exact), 10) << run.why;
  const auto mp3 = run.row(read_sound("lossy.mp3"));
  ASSERT_EQ(mp3.size(), exact.size()) << run.why;
  EXPECT_GT(apart(mp3, exact), 10);
}

TEST(Audio, APathIsReadAsTheBytesAre) {
  SoundRun bytes(R"({"seconds": 0.2})");
  const auto expected = bytes.row(read_sound("mono.wav"));
  const std::string folder = std::string(PENSTOCK_TEST_DATA) + "/sound";
  SoundRun path(R"({"seconds": 0.2, "folder": ")" + folder + R"("})");
  EXPECT_EQ(path.row("mono.wav", true), expected);
  EXPECT_EQ(path.row(folder + "/mono.wav", true), expected);
  path.row("none.wav", true);
  EXPECT_THAT(path.why, HasSubstr("none.wav"));
}

TEST(Audio, StartAndEndCutAPartOut) {
  SoundRun whole(R"({"seconds": 0.25})");
  const auto all = whole.row(read_sound("mono.wav"));
  SoundRun part(R"({"seconds": 0.05, "start": "from", "end": "to"})");
  const auto some = part.row(read_sound("mono.wav"), false, 0, 0.1, 0.15);
  ASSERT_EQ(some.size(), 800u) << part.why;
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 1600));
  EXPECT_EQ(part.row(read_sound("mono.wav"), false, 0, -1, -1).size(), 800u);
  part.row(read_sound("mono.wav"), false, 0, 0.3, 0.4);
  EXPECT_THAT(part.why, HasSubstr("has 0.25 seconds, but seconds from 0.3"));
  part.row(read_sound("mono.wav"), false, 0, 0.2, 0.1);
  EXPECT_THAT(part.why, HasSubstr("are requested"));
  part.row(read_sound("mono.wav"), false, 0, 0.1, 0);
  EXPECT_EQ(part.why, "to is 0.0, but seconds from 0.1 on are requested");
}

TEST(Audio, ACropAtRandomIsDrawnForTheTrainSideAlone) {
  SoundRun train(R"({"seconds": 0.1, "crop": "random"})");
  const auto all = SoundRun(R"({"seconds": 0.25})").row(read_sound("mono.wav"));
  std::set<float> firsts;
  for (std::int64_t sample = 0; sample < 20; ++sample) {
    const auto row = train.row(read_sound("mono.wav"), false, sample);
    EXPECT_NE(std::search(all.begin(), all.end(), row.begin(), row.end()),
              all.end());
    firsts.insert(row[0]);
  }
  EXPECT_GT(firsts.size(), 15u);
  SoundRun val(R"({"seconds": 0.1, "crop": "random"})", false);
  SoundRun center(R"({"seconds": 0.1})", false);
  EXPECT_EQ(val.row(read_sound("mono.wav")),
            center.row(read_sound("mono.wav")));
}

// What an older version kept of spectrograms has other last bits.
TEST(Audio, StoresOfSpectrogramsSayHowTheWindowWasMade) {
  auto recipe = [](const char* store) {
    return SoundRun(std::string(R"({"seconds": 0.2, "mel": {}, "store": ")") +
                    store + "\"}")
        .kind->facts()
        .stored_recipe;
  };
  const Json features = recipe("features");
  ASSERT_NE(features.find("window"), nullptr) << features.dump();
  EXPECT_EQ(recipe("samples").find("window"), nullptr);
  EXPECT_EQ(features.find("decibels"), nullptr);
  const Json magnitudes =
      SoundRun(R"({"seconds": 0.2, "mel": {"power": "magnitude"}})")
          .kind->facts()
          .stored_recipe;
  EXPECT_NE(magnitudes.find("decibels"), nullptr) << magnitudes.dump();
}

// Whatever is kept, a batch has the same.
TEST(Audio, EveryFormThatIsKeptGivesTheSameRows) {
  for (const char* augment : {"[]", R"([{"spec_augment": {"time_masks": 1,
                                         "time_width": 9}}])",
                              R"([{"gain": {}}, {"noise": {}}])"}) {
    std::vector<std::vector<float>> rows;
    for (const char* store : {"encoded", "samples", "features"}) {
      if (std::string(augment).find("gain") != std::string::npos &&
          store == std::string("features"))
        continue;
      SoundRun run(std::string(R"({"seconds": 0.2, "mel": {"n_mels": 20},
                              "store": ")") +
                   store + R"(", "augment": )" + augment + "}");
      rows.push_back(run.row(read_sound("stereo.wav"), false, 3));
      ASSERT_FALSE(rows.back().empty()) << run.why;
    }
    for (const auto& row : rows) EXPECT_EQ(row, rows[0]) << augment;
  }
}

TEST(Audio, BadSoundsAreBadRows) {
  const std::string wav = read_sound("mono.wav");
  const std::string flac = read_sound("stereo.flac");
  struct {
    std::string bytes;
    const char* why;
  } const cases[] = {{"", "is empty"},
                     {"no sound at all, only text", "cannot be decoded"},
                     {read_sound("empty.wav"), "no samples"},
                     {flac.substr(0, flac.size() / 2), "cut off or damaged"}};
  for (const char* store : {"encoded", "samples"})
    for (const auto& bad : cases) {
      SoundRun run(std::string(R"({"seconds": 0.2, "store": ")") + store +
                   "\"}");
      EXPECT_TRUE(run.row(bad.bytes).empty());
      EXPECT_THAT(run.why, HasSubstr(bad.why));
    }
  SoundRun short_run(R"({"seconds": 0.2})");
  EXPECT_FALSE(short_run.row(wav).empty());
}

// A scan leaves out, or lists, what its parsers find; what encoding finds ends
// it.
TEST(Audio, WhatAHeaderSaysIsFoundBeforeASoundIsDecoded) {
  const std::string folder = std::string(PENSTOCK_TEST_DATA) + "/sound/";
  SoundRun run(R"({"seconds": 0.2, "start": "from", "end": "to"})");
  for (const bool is_path : {false, true}) {
    auto sound = [&](const char* name) {
      return is_path ? folder + name : read_sound(name);
    };
    run.row(sound("golden.json"), is_path);
    EXPECT_TRUE(run.parsed_as_bad) << run.why;
    EXPECT_THAT(run.why, HasSubstr("cannot be decoded"));
    run.row(sound("empty.wav"), is_path);
    EXPECT_TRUE(run.parsed_as_bad) << run.why;
    run.row(sound("mono.wav"), is_path, 0, 3, 4);
    EXPECT_TRUE(run.parsed_as_bad) << run.why;
    for (const char* good :
         {"mono.wav", "stereo.flac", "lossy.ogg", "lossy.mp3"})
      EXPECT_FALSE(run.row(sound(good), is_path).empty()) << run.why;
  }
  run.row(folder + "none.wav", true);
  EXPECT_TRUE(run.parsed_as_bad) << run.why;
  EXPECT_THAT(run.why, HasSubstr("none.wav"));
}

/// A WAV file of these samples, one channel of 16 kHz.
std::string wav_of(const std::vector<float>& samples) {
  std::string wav = read_sound("mono.wav");
  const std::size_t data = wav.find("data");
  const auto bytes = static_cast<std::uint32_t>(samples.size() * sizeof(float));
  wav.resize(data + 8);
  std::memcpy(wav.data() + data + 4, &bytes, sizeof(bytes));
  wav.append(reinterpret_cast<const char*>(samples.data()), bytes);
  return wav;
}

TEST(Audio, ASampleThatIsNoFiniteNumberMakesItsRowBad) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const char* settings :
       {R"({"seconds": 0.05})", R"({"seconds": 0.05, "store": "encoded"})",
        R"({"seconds": 0.05, "rate": 8000})", R"({"seconds": 0.05, "mel": {}})",
        R"({"seconds": 0.05, "mel": {}, "store": "encoded"})"})
    for (const auto& [value, shown] :
         {std::pair(kNan, "NaN"), std::pair(kInf, "an infinity"),
          std::pair(-kInf, "an infinity")}) {
      SCOPED_TRACE(std::string(settings) + shown);
      SoundRun run(settings);
      std::vector<float> samples(800, 0.25F);
      EXPECT_FALSE(run.row(wav_of(samples)).empty()) << run.why;
      samples[321] = value;
      EXPECT_TRUE(run.row(wav_of(samples)).empty());
      EXPECT_EQ(run.why, "audio sample 321 is " + std::string(shown) +
                             ", expected finite numbers");
    }
  // One that is not read does not matter.
  SoundRun start(R"({"seconds": 0.05, "crop": "start"})");
  std::vector<float> samples(1600, 0.25F);
  samples[1500] = kNan;
  EXPECT_FALSE(start.row(wav_of(samples)).empty()) << start.why;
}

TEST(Audio, ACheckDecodesWhatRowsMayNeed) {
  auto bad = [](const std::string& settings, const std::string& bytes,
                bool checks) {
    const auto kind = make_audio("x", audio_of(settings));
    Block block;
    block.rows = 1;
    block.columns.push_back({.type = ColumnType::binary});
    block.columns[0].append_text(bytes);
    const auto bound = kind->bind({.info = {{.name = "audio"}},
                                   .types = {ColumnType::binary},
                                   .at = {0}});
    Values parsed;
    Faults faults;
    (checks ? bound->checking_parser() : bound->parser())
        ->parse(block, parsed, faults);
    return !faults.rows.empty();
  };
  std::vector<float> samples(2000, 0.25F);
  samples[1000] = std::numeric_limits<float>::quiet_NaN();
  const std::string middle = wav_of(samples);
  EXPECT_FALSE(bad(R"({"seconds": 0.02})", middle, false));
  EXPECT_TRUE(bad(R"({"seconds": 0.02})", middle, true));
  EXPECT_FALSE(bad(R"({"seconds": 0.02, "crop": "start"})", middle, true));
  const std::string drawn = R"({"seconds": 0.02, "crop": "random"})";
  EXPECT_TRUE(bad(drawn, middle, true));
  for (const char* name : {"stereo.flac", "lossy.ogg", "lossy.mp3"}) {
    const std::string good = read_sound(name);
    EXPECT_FALSE(bad(drawn, good, true)) << name;
  }
  std::string cut = read_sound("stereo.flac");
  cut.resize(cut.size() - 100);
  EXPECT_TRUE(bad(drawn, cut, true));
}

/// What disks and interrupted programs do to a file.
std::string damaged(std::string bytes, std::mt19937_64& random) {
  for (std::size_t blow = 0; blow <= random() % 3 && !bytes.empty(); ++blow) {
    // Headers are hit as often as all the rest.
    const std::size_t most = random() % 2 == 0
                                 ? std::min<std::size_t>(bytes.size(), 64)
                                 : bytes.size();
    const std::size_t at = random() % most;
    switch (random() % 5) {
      case 0:
        bytes[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        for (std::size_t i = at; i < std::min(bytes.size(), at + 4); ++i)
          bytes[i] = static_cast<char>(random() % 2 == 0 ? 0xff : 0x7f);
        break;
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes.erase(at, 1 + random() % 16);
    }
  }
  return bytes;
}

TEST(Audio, DamagedFilesGiveARowOrAFault) {
  const char* wished = std::getenv("PENSTOCK_TEST_DAMAGES");
  const int times = wished == nullptr ? 100 : std::atoi(wished);
  std::mt19937_64 random(1);
  for (const char* name :
       {"stereo.wav", "stereo.flac", "lossy.ogg", "lossy.mp3"}) {
    const std::string good = read_sound(name);
    SoundRun run(R"({"seconds": 0.05, "rate": 8000, "store": "samples"})");
    int refused = 0;
    for (int time = 0; time < times; ++time) {
      SCOPED_TRACE(std::string(name) + ", damage " + std::to_string(time));
      const auto row = run.row(damaged(good, random));
      ASSERT_NE(row.empty(), run.why.empty());
      refused += row.empty() ? 1 : 0;
    }
    std::cout << name << ": " << refused << " of " << times
              << " damaged files were refused\n";
  }
}

TEST(Audio, WrongSettingsAreNamed) {
  for (auto [settings, expected] : {
           std::pair("{}", "seconds"),
           std::pair(R"({"seconds": 1e-6})", "1 to 2^28"),
           std::pair(R"({"seconds": 1, "store": "features"})", "features need"),
           std::pair(R"({"seconds": 1, "crop": "random", "store": "samples"})",
                     "random crop"),
           std::pair(R"({"seconds": 0.01, "mel": {}})", "too few"),
           std::pair(R"({"seconds": 1, "mel": {"win_length": 500}})",
                     "longer than"),
           std::pair(R"({"seconds": 1, "mel": {"f_min": 9000}})", "f_min"),
           std::pair(R"({"seconds": 1, "mel": {"n_mfcc": 200}})", "n_mfcc"),
           std::pair(R"({"seconds": 1, "mel": {"log": "none", "n_mfcc": 9}})",
                     "need a logarithm"),
           std::pair(R"({"seconds": 1, "augment": [{"spec_augment": {}}]})",
                     "no spectrogram"),
           std::pair(R"({"seconds": 1, "mel": {}, "augment":
                        [{"spec_augment": {}}, {"gain": {}}]})",
                     "last"),
           std::pair(R"({"seconds": 1, "mel": {}, "store": "features",
                        "augment": [{"gain": {}}]})",
                     "after the waveform"),
           std::pair(R"({"seconds": 1, "mels": {}})", "mels"),
           std::pair(R"({"seconds": 1, "augment": [{"spec_augmen": {}}]})",
                     "did you mean 'spec_augment'?"),
       })
    try {
      audio_of(settings);
      ADD_FAILURE() << settings;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
}

}  // namespace
}  // namespace penstock
