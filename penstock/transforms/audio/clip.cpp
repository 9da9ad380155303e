#include "penstock/transforms/audio/clip.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "penstock/base/json.h"
#include "penstock/base/regular_file.h"
#include "penstock/transforms/named_files.h"

namespace penstock {
namespace {

/// Channels times samples that are decoded at once, about 1 GiB.
constexpr std::int64_t kMost = std::int64_t{1} << 28;
/// The same where nothing is kept of them.
constexpr std::int64_t kCheckedAtOnce = std::int64_t{1} << 18;

/// Of a clip that is one; else empty.
std::string path_of(const EncodedClip& clip) {
  std::string path(reinterpret_cast<const char*>(clip.bytes.data()),
                   clip.is_path ? clip.bytes.size() : 0);
  path.resize(std::min(path.size(), path.find('\0')));
  return path;
}

/// By its first bytes, an OGG or MP3 file.
bool opens_slowly(const EncodedClip& clip, const std::string& path) {
  std::array<char, 4> first{};
  if (!clip.is_path) {
    std::memcpy(first.data(), clip.bytes.data(),
                std::min(first.size(), clip.bytes.size()));
  } else if (const int file = open_regular_file(path.c_str()); file >= 0) {
    const ::ssize_t got = ::pread(file, first.data(), first.size(), 0);
    ::close(file);
    if (got < 0) return false;
  }
  const std::string_view begin(first.data(), first.size());
  return begin == "OggS" || begin.starts_with("ID3") ||
         (begin[0] == '\xff' && (begin[1] & 0xe0) == 0xe0);
}

/// Without a branch, many at once.
bool all_finite(std::span<const float> samples) {
  constexpr std::uint32_t kExponent = 0x7f80'0000;
  std::uint32_t others = 0;
  for (const float sample : samples)
    others |=
        (std::bit_cast<std::uint32_t>(sample) & kExponent) == kExponent ? 1 : 0;
  return others == 0;
}

}  // namespace

void EncodedClip::append(Bytes& to) const {
  to.append_value(start);
  to.append_value(end);
  to.append_value(std::int64_t{is_path ? 1 : 0});
  to.append(bytes.data(), bytes.size());
}

EncodedClip EncodedClip::of(std::span<const std::byte> run) {
  EncodedClip clip;
  std::int64_t path = 0;
  PENSTOCK_ASSERT(run.size() >= kHeader, "an encoded clip has a header");
  std::memcpy(&clip.start, run.data(), sizeof(double));
  std::memcpy(&clip.end, run.data() + sizeof(double), sizeof(double));
  std::memcpy(&path, run.data() + 2 * sizeof(double), sizeof(path));
  clip.is_path = path != 0;
  clip.bytes = run.subspan(kHeader);
  return clip;
}

const Resampler& ClipReader::resampler_from(int rate) {
  for (const auto& [from, resampler] : resamplers_)
    if (from == rate) return *resampler;
  constexpr std::size_t kKept = 8;  // kernels of odd rates are large
  if (resamplers_.size() == kKept) resamplers_.erase(resamplers_.begin());
  resamplers_.emplace_back(rate,
                           std::make_unique<Resampler>(rate, audio_.rate));
  return *resamplers_.back().second;
}

std::string ClipReader::part_of(const EncodedClip& clip, const SoundInfo& info,
                                Part& part) const {
  if (info.frames == 0) return "the sound has no samples";
  auto sample_at = [&](double seconds) {
    const double at = std::nearbyint(seconds * info.rate);
    return at >= static_cast<double>(info.frames)
               ? info.frames
               : static_cast<std::int64_t>(at);
  };
  const std::int64_t first = sample_at(clip.start);
  const std::int64_t end = clip.end > 0 ? sample_at(clip.end) : info.frames;
  if (first >= end)
    return "the sound has " +
           Json(static_cast<double>(info.frames) / info.rate).dump() +
           " seconds, but seconds from " + Json(clip.start).dump() +
           (clip.end > 0 ? " to " + Json(clip.end).dump() : "") +
           " are requested";
  part = {.first = first, .frames = end - first};
  return {};
}

/// One channel, or the mean of all, behind `lead` zeros and before others.
void ClipReader::mix(const SoundInfo& info, std::size_t channel,
                     std::int64_t lead, std::int64_t frames) {
  const auto all = static_cast<std::size_t>(info.channels);
  const float* from = decoded_.data();
  float* to = mixed_.data() + lead;
  const auto count = static_cast<std::size_t>(frames);
  std::fill(mixed_.data(), to, 0.0F);
  std::fill(to + count, mixed_.data() + mixed_.size(), 0.0F);
  if (audio_.stereo || all == 1) {
    const std::size_t at = std::min(channel, all - 1);
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i * all + at];
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::size_t c = 0; c < all; ++c) sum += from[i * all + c];
    to[i] = sum / static_cast<float>(all);
  }
}

/// Samples from `first` on of the `length` that come of `mixed_`, which holds
/// what these depend on: by soxr, all samples of the sound.
std::string ClipReader::resample(const SoundInfo& info, std::int64_t first,
                                 std::int64_t length, std::span<float> to) {
  if (!by_soxr(info)) {
    resampler_from(info.rate).run(mixed_, first, to);
    return {};
  }
  resampled_.resize(static_cast<std::size_t>(length));
  std::string why =
      soxr_(info.rate, static_cast<double>(audio_.rate), mixed_, resampled_);
  std::copy_n(resampled_.begin() + first, to.size(), to.begin());
  return why;
}

std::int64_t ClipReader::length_of(const SoundInfo& info, const Part& part) {
  if (!by_soxr(info)) return resampler_from(info.rate).length(part.frames);
  return part.frames > kMost
             ? 0
             : (part.frames * audio_.rate + info.rate - 1) / info.rate;
}

/// What the header says that cannot be done; empty: nothing.
std::string ClipReader::fault_of(const SoundInfo& info) const {
  if (audio_.stereo && info.channels > 2)
    return "the sound has " + std::to_string(info.channels) +
           " channels, expected 1 or 2 for stereo";
  if (!by_soxr(info) && !Resampler::is_possible(info.rate, audio_.rate))
    return "the rate of " + std::to_string(info.rate) +
           " Hz has too little in " + "common with " +
           std::to_string(audio_.rate) + " Hz to be resampled";
  return {};
}

std::string ClipReader::open(const EncodedClip& clip, const std::string& path,
                             SoundInfo& info, Part& part) {
  if (decoder_ == nullptr) decoder_ = make_sound_decoder();
  std::string why = clip.is_path ? decoder_->open_path(path, info)
                                 : decoder_->open(clip.bytes, info);
  if (clip.is_path) check_unchanged_since(opened_ns_, stamp_of(path), path);
  if (why.empty()) why = part_of(clip, info, part);
  return why.empty() ? fault_of(info) : why;
}

/// Into decoded_; `path` is empty where the bytes of the file were given.
std::string ClipReader::decode(std::int64_t first, std::int64_t frames,
                               const std::string& path) {
  std::string why = decoder_->read(first, frames, decoded_.data());
  if (!path.empty()) check_unchanged_since(opened_ns_, stamp_of(path), path);
  return why;
}

// Of a second of OGG or MP3 half of the time, or a tenth, is that of opening
// it: only decoding does.
std::string ClipReader::check(const EncodedClip& clip) {
  const std::string path = path_of(clip);
  SoundInfo info;
  Part part{};
  return opens_slowly(clip, path) ? "" : open(clip, path, info, part);
}

std::string ClipReader::check_all(const EncodedClip& clip) {
  SoundInfo info;
  Part part{};
  const std::string path = path_of(clip);
  std::string why = open(clip, path, info, part);
  const std::int64_t most =
      std::max<std::int64_t>(1, kCheckedAtOnce / std::max(1, info.channels));
  for (std::int64_t done = 0, count = 0; why.empty() && done < part.frames;
       done += count) {
    count = std::min(most, part.frames - done);
    decoded_.resize(static_cast<std::size_t>(count * info.channels));
    why = decode(part.first + done, count, path);
    if (why.empty() && !all_finite(decoded_))
      why = not_finite(info, part.first + done);
  }
  return why;
}

/// Names the first of the decoded samples, which begin with `first`, that made
/// one of a row that is not finite.
std::string ClipReader::not_finite(const SoundInfo& info,
                                   std::int64_t first) const {
  const auto found = std::ranges::find_if_not(
      decoded_, [](float sample) { return std::isfinite(sample); });
  if (found == decoded_.end())
    return "the samples are too large: their sums are not finite";
  const std::int64_t frame = (found - decoded_.begin()) / info.channels;
  return "sample " + std::to_string(first + frame) + " is " +
         (std::isnan(*found) ? "NaN" : "an infinity") +
         ", expected finite numbers";
}

std::string ClipReader::read(const EncodedClip& clip,
                             std::optional<Random> random,
                             std::span<float> to) {
  SoundInfo info;
  Part part{};
  const std::string path = path_of(clip);
  std::string why = open(clip, path, info, part);
  if (!why.empty()) return why;

  const std::int64_t length = length_of(info, part);
  const std::int64_t wanted = audio_.samples();
  const std::int64_t count = std::min(length, wanted);
  std::int64_t crop = 0;
  if (length > wanted && audio_.crop != Audio::Crop::start)
    crop = random ? static_cast<std::int64_t>(random->below(
                        static_cast<std::uint64_t>(length - wanted) + 1))
                  : (length - wanted) / 2;
  // Only the samples that these depend on are decoded; filters of soxr have no
  // end.
  const auto [begin, end] = by_soxr(info)
                                ? std::pair(std::int64_t{0}, part.frames)
                                : resampler_from(info.rate).needed(crop, count);
  const std::int64_t first = std::max<std::int64_t>(begin, 0);
  const std::int64_t frames = std::min(end, part.frames) - first;
  if (frames > kMost / info.channels || end - begin > kMost ||
      (by_soxr(info) && length > kMost))
    return "the sound has " + std::to_string(frames) + " samples of " +
           std::to_string(info.channels) +
           " channels, more than are decoded at once";
  decoded_.resize(static_cast<std::size_t>(frames * info.channels));
  why = decode(part.first + first, frames, path);
  if (!why.empty()) return why;
  mixed_.resize(static_cast<std::size_t>(end - begin));
  const auto each = static_cast<std::size_t>(wanted);
  const auto made = static_cast<std::size_t>(count);
  for (std::size_t c = 0; c < static_cast<std::size_t>(audio_.channels());
       ++c) {
    const std::span<float> channel = to.subspan(c * each, each);
    mix(info, c, first - begin, frames);
    why = resample(info, crop, length, channel.first(made));
    if (!why.empty()) return why;
    std::ranges::fill(channel.subspan(made), 0.0F);
  }
  return all_finite(to) ? "" : not_finite(info, part.first + first);
}

}  // namespace penstock
