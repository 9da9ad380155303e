#include <sndfile.h>
#ifdef PENSTOCK_SOXR
#include <soxr.h>
#endif

#include <algorithm>

#include "penstock/transforms/audio/decode/sound_length.h"
#include "penstock/transforms/audio/decoder.h"

namespace penstock {
namespace {

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

/// What is read, as libsndfile asks for it.
struct Input {
  SoundBytes bytes = {};
  sf_count_t at = 0;

  static sf_count_t length(void* self) { return of(self).bytes.size(); }
  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    Input& in = of(self);
    const sf_count_t size = length(self);
    const sf_count_t from = whence == SEEK_SET   ? 0
                            : whence == SEEK_CUR ? in.at
                                                 : size;
    sf_count_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return -1;
    return in.at = std::min(to, size);
  }
  static sf_count_t read(void* to, sf_count_t count, void* self) {
    Input& in = of(self);
    count = std::clamp<sf_count_t>(count, 0, length(self) - in.at);
    const auto wanted = static_cast<std::size_t>(count);
    const std::size_t got =
        in.bytes.read(in.at, {static_cast<std::byte*>(to), wanted});
    in.at += static_cast<sf_count_t>(got);
    return static_cast<sf_count_t>(got);
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* self) { return of(self).at; }
  static Input& of(void* self) { return *static_cast<Input*>(self); }
};

bool is_read(int format) {
  switch (format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_WAV:
    case SF_FORMAT_WAVEX:
    case SF_FORMAT_W64:
    case SF_FORMAT_RF64:
    case SF_FORMAT_AIFF:
    case SF_FORMAT_FLAC:
    case SF_FORMAT_OGG:
    case SF_FORMAT_MPEG:
      return true;
    default:
      return false;
  }
}

class SndfileDecoder final : public SoundDecoder {
 public:
  std::string open(std::span<const std::byte> bytes, SoundInfo& info) override {
    file_.reset();
    input_.bytes.open(bytes);
    return opened(info);
  }
  std::string open_path(const std::string& path, SoundInfo& info) override {
    file_.reset();
    std::string why = input_.bytes.open_path(path);
    if (why.empty()) why = opened(info);
    return why.empty() ? why : "'" + path + "': " + why;
  }

  std::string read(std::int64_t first, std::int64_t frames,
                   float* to) override {
    if (first != at_ && sf_seek(file_.get(), first, SEEK_SET) != first)
      return "the file cannot be read from sample " + std::to_string(first) +
             " on";
    const sf_count_t got = sf_readf_float(file_.get(), to, frames);
    at_ = first + got;
    if (got == frames) return {};
    return "the file ends after " + std::to_string(at_) + " of " +
           std::to_string(frames_) + " samples; it is cut off or damaged";
  }

 private:
  std::string opened(SoundInfo& info) {
    std::int64_t frames = -1;
    std::string why = check_length(input_.bytes, frames);
    if (!why.empty()) return why;
    SF_VIRTUAL_IO io{.get_filelen = Input::length,
                     .seek = Input::seek,
                     .read = Input::read,
                     .write = Input::write,
                     .tell = Input::tell};
    SF_INFO found{};
    input_.at = 0;
    file_.reset(sf_open_virtual(&io, SFM_READ, &found, &input_));
    if (frames >= 0) found.frames = std::min(found.frames, frames);
    return checked(found, info);
  }
  std::string checked(const SF_INFO& found, SoundInfo& info) {
    if (file_ == nullptr)
      return std::string("the file cannot be decoded: ") + sf_strerror(nullptr);
    if (!is_read(found.format))
      return "the format is not supported, expected WAV, FLAC, OGG or MP3";
    if (found.channels < 1 || found.channels > 64 || found.samplerate < 1 ||
        found.samplerate > 1'000'000 || found.frames < 0)
      return "the header declares " + std::to_string(found.channels) +
             " channels of " + std::to_string(found.samplerate) + " Hz";
    at_ = 0;
    frames_ = found.frames;
    info = {.frames = found.frames,
            .rate = found.samplerate,
            .channels = found.channels};
    return {};
  }

  Input input_;
  std::unique_ptr<SNDFILE, CloseSound> file_;
  std::int64_t at_ = 0, frames_ = 0;
};

#ifdef PENSTOCK_SOXR
std::string resample_by_soxr(double from_rate, double to_rate,
                             std::span<const float> from, std::span<float> to) {
  std::size_t made = 0;
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t on_one_thread = soxr_runtime_spec(1);
  const char* why = soxr_oneshot(from_rate, to_rate, 1, from.data(),
                                 from.size(), nullptr, to.data(), to.size(),
                                 &made, nullptr, &quality, &on_one_thread);
  if (why != nullptr) return std::string("libsoxr: ") + why;
  std::ranges::fill(to.subspan(made), 0.0F);
  return {};
}
constexpr ResampleBySoxr kResampleBySoxr = resample_by_soxr;
#else
constexpr ResampleBySoxr kResampleBySoxr = nullptr;
#endif

constexpr AudioPart kPart{
    .make_decoder = []() -> std::unique_ptr<SoundDecoder> {
      return std::make_unique<SndfileDecoder>();
    },
    .resample_by_soxr = kResampleBySoxr};

}  // namespace
}  // namespace penstock

extern "C" const penstock::AudioPart* penstock_audio_part() {
  return &penstock::kPart;
}
