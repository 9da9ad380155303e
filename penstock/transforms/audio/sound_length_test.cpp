// Files that are cut off, and files that do not say how long they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "penstock/transforms/audio/clip.h"
#include "penstock/transforms/audio/test_sounds.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string number(std::uint64_t value, int bytes, bool big = false) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i) & 0xff);
  return text;
}

/// 1,000 samples of 8 kHz, none of which is 0.
std::string samples(bool big = false) {
  std::string all;
  for (std::uint64_t i = 0; i < 1000; ++i) all += number(1000 + i, 2, big);
  return all;
}

constexpr std::uint64_t kBytes = 2000;

std::string wav_format() {
  return "fmt " + number(16, 4) + number(1, 2) + number(1, 2) +
         number(8000, 4) + number(16000, 4) + number(2, 2) + number(16, 2);
}

std::string wav(std::uint64_t riff = 36 + kBytes, std::uint64_t data = kBytes) {
  return "RIFF" + number(riff, 4) + "WAVE" + wav_format() + "data" +
         number(data, 4) + samples();
}

std::string rf64(std::uint64_t data = kBytes) {
  return "RF64" + number(UINT32_MAX, 4) + "WAVEds64" + number(28, 4) +
         number(data, 8) + number(data, 8) + number(1000, 8) + number(0, 4) +
         wav_format() + "data" + number(UINT32_MAX, 4) + samples();
}

std::string aiff(std::uint64_t data = 8 + kBytes) {
  const std::string rate = number(0x400bfa00, 4, true) + std::string(6, '\0');
  return "FORM" + number(data, 4, true) + "AIFFCOMM" + number(18, 4, true) +
         number(1, 2, true) + number(1000, 4, true) + number(16, 2, true) +
         rate + "SSND" + number(data, 4, true) + std::string(8, '\0') +
         samples(true);
}

std::string w64(std::uint64_t data = 24 + kBytes) {
  const std::string wave =
      "\xf3\xac\xd3\x11\x8c\xd1" + number(0, 1) + "\xc0\x4f\x8e\xdb\x8a";
  const std::string end = number(0xf3, 1) + "\xac\xd3\x11\x8c\xd1" +
                          number(0, 1) + "\xc0\x4f\x8e\xdb\x8a";
  const std::string riff =
      "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1" + number(0, 2);
  return riff + number(40 + 40 + data, 8) + "wave" + end + "fmt " + end +
         number(24 + 16, 8) + wav_format().substr(8) + "data" + end +
         number(data, 8) + samples();
}

/// What is wrong with a sound of which all must be decoded.
std::string fault_of(const std::string& bytes, bool is_path = false) {
  ClipReader reader(audio_of(R"({"seconds": 0.01, "crop": "random"})"));
  return reader.check_all(
      {.is_path = is_path, .bytes = std::as_bytes(std::span(bytes))});
}

/// What is known to be wrong with it before it is decoded.
std::string early_fault_of(const std::string& bytes) {
  ClipReader reader(audio_of(R"({"seconds": 0.01})"));
  return reader.check({.bytes = std::as_bytes(std::span(bytes))});
}

/// All samples at their own rate; zeros follow the end.
std::vector<float> decoded(const std::string& bytes, int rate, double seconds) {
  Json settings;
  settings["seconds"] = seconds;
  settings["rate"] = std::int64_t{rate};
  settings["crop"] = "start";
  ClipReader reader(audio_of(settings.dump()));
  std::vector<float> all(static_cast<std::size_t>(std::lround(seconds * rate)));
  const std::string why =
      reader.read({.bytes = std::as_bytes(std::span(bytes))}, {}, all);
  EXPECT_THAT(why, IsEmpty());
  while (!all.empty() && all.back() == 0) all.pop_back();
  return all;
}

TEST(SoundLength, WholeFilesHaveAllTheirSamples) {
  for (const std::string& bytes : {wav(), rf64(), aiff(), w64()}) {
    SCOPED_TRACE(bytes.substr(0, 4));
    EXPECT_THAT(fault_of(bytes), IsEmpty());
    const std::vector<float> all = decoded(bytes, 8000, 0.2);
    ASSERT_EQ(all.size(), 1000u);
    EXPECT_EQ(all.back(), 1999.0F / 32768);
  }
}

TEST(SoundLength, AFileThatIsCutOffIsRefusedBeforeItIsDecoded) {
  for (const std::string& whole : {wav(), rf64(), aiff(), w64()})
    for (const std::size_t cut :
         {std::size_t{1}, std::size_t{500}, std::size_t{2000}}) {
      SCOPED_TRACE(whole.substr(0, 4) +
                   " without its last bytes: " + std::to_string(cut));
      const std::string bytes = whole.substr(0, whole.size() - cut);
      const bool aiff = whole.starts_with("FORM");
      const std::string expected =
          std::string("the file is cut off: the chunk '") +
          (aiff ? "SSND" : "data") + "' has " + (aiff ? "2008" : "2000") +
          " bytes according to its header, but only " +
          std::to_string((aiff ? 2008 : 2000) - cut) + " are present";
      EXPECT_EQ(early_fault_of(bytes), expected);
      EXPECT_EQ(fault_of(bytes), expected);
    }
}

TEST(SoundLength, ChunksBehindTheSoundMayBeCutOff) {
  EXPECT_THAT(fault_of(wav(36 + kBytes + 100) + "LIST" + number(90, 4)),
              IsEmpty());
}

// As ffmpeg, sox and others write into a pipe.
TEST(SoundLength, ALengthThatAWriterToAPipeDidNotKnowIsThatOfTheFile) {
  constexpr std::uint64_t kMost = UINT32_MAX;
  for (const std::string& bytes :
       {wav(kMost, kMost), wav(0, 0), wav(36, 0), wav(0x7fffffff, 0x7fffffdb),
        wav(0x7ffff024, 0x7ffff000), wav(kMost, kMost - 36), rf64(0),
        rf64(UINT64_MAX), aiff(0), w64(INT64_MAX)}) {
    SCOPED_TRACE(bytes.substr(0, 4));
    EXPECT_THAT(early_fault_of(bytes), IsEmpty());
    EXPECT_EQ(decoded(bytes, 8000, 0.2).size(), 1000u);
  }
}

TEST(SoundLength, AFileThatWasClosedWithoutASampleHasNone) {
  std::string bytes = wav(36 + 16, 0);
  bytes.resize(44);
  bytes += "LIST" + number(8, 4) + "INFOISFT";
  EXPECT_EQ(early_fault_of(bytes), "the file has no samples");
}

TEST(SoundLength, AnOggFileMustEndWithAWholePage) {
  const std::string whole = read_sound("lossy.ogg");
  EXPECT_THAT(fault_of(whole), IsEmpty());
  EXPECT_THAT(fault_of(whole + "TAG" + std::string(125, 'x')), IsEmpty());
  for (const std::size_t cut :
       {std::size_t{1}, std::size_t{20}, std::size_t{500}})
    EXPECT_THAT(fault_of(whole.substr(0, whole.size() - cut)),
                HasSubstr("cut off: the last page has"))
        << cut;
}

/// STREAMINFO without the number of samples, as a writer to a pipe leaves it.
std::string flac_without_length() {
  std::string bytes = read_sound("stereo.flac");
  bytes[8 + 13] = static_cast<char>(bytes[8 + 13] & 0xf0);
  for (std::size_t i = 8 + 14; i < 8 + 18; ++i) bytes[i] = '\0';
  return bytes;
}

TEST(SoundLength, FlacWithoutALengthEndsWithItsLastFrame) {
  const std::string bytes = flac_without_length();
  ASSERT_NE(bytes, read_sound("stereo.flac"));
  EXPECT_THAT(early_fault_of(bytes), IsEmpty());
  EXPECT_THAT(fault_of(bytes), IsEmpty());
  EXPECT_EQ(decoded(bytes, 16000, 0.2),
            decoded(read_sound("stereo.flac"), 16000, 0.2));
  const std::string tag =
      "ID3\3" + std::string(5, '\0') + "\x20" + std::string(32, '\0');
  EXPECT_EQ(decoded(tag + bytes, 16000, 0.2), decoded(bytes, 16000, 0.2));
  EXPECT_THAT(early_fault_of(bytes.substr(0, bytes.size() - 1)),
              HasSubstr("does not end with a complete frame"));
}

/// Without its first frame, which says how many follow.
std::string mp3_without_length() {
  const std::string bytes = read_sound("lossy.mp3");
  const std::size_t next = bytes.find(bytes.substr(0, 2), 2);
  EXPECT_LT(bytes.find("Xing"), next);
  return bytes.substr(next);
}

TEST(SoundLength, Mp3WithoutALengthHasAllItsFrames) {
  const std::string bytes = mp3_without_length();
  const std::string picture = "ID3\3" + number(0, 2) + number(0, 1) +
                              number(3, 1) + "\x68" + number(0, 1) +
                              std::string(3 * 128 * 128 + 0x68 * 128, 'x');
  const std::string old_tag = "TAG" + std::string(125, 'x');
  const std::vector<float> all = decoded(bytes, 16000, 1);
  EXPECT_GT(all.size(), 4000u);  // with what the encoder fills up
  EXPECT_LE(all.size() % 576, 575u);
  for (const std::string& other :
       {bytes, picture + bytes, bytes + old_tag, picture + bytes + old_tag,
        bytes + "APETAGEX" + std::string(4000, 'x')}) {
    EXPECT_THAT(fault_of(other), IsEmpty());
    EXPECT_EQ(decoded(other, 16000, 1), all);
  }
}

TEST(SoundLength, AnyPartOfMp3WithoutALengthCanBeDrawn) {
  const std::string bytes = "ID3\3" + number(0, 2) + number(0, 1) +
                            number(0, 1) + "\x7f" + number(0, 1) +
                            std::string(0x7f * 128, 'x') + mp3_without_length();
  ClipReader reader(audio_of(R"({"seconds": 0.02, "crop": "random"})"));
  std::vector<float> row(320);
  for (std::uint64_t draw = 0; draw < 200; ++draw)
    EXPECT_THAT(reader.read({.bytes = std::as_bytes(std::span(bytes))},
                            Random(1, 1, draw, 0), row),
                IsEmpty());
}

TEST(SoundLength, APathThatIsNotAFileIsRefusedWithoutWaiting) {
  char folder[] = "/tmp/penstock-sound-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string pipe = std::string(folder) + "/pipe.wav";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(
      fault_of(pipe, true),
      "'" + pipe + "': it is a pipe, a socket or a device, not a regular file");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock
