#include "penstock/transforms/audio/clip.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/json.h"

namespace penstock {
namespace {

/// Channels times samples that are decoded at once, about 1 GiB.
constexpr std::int64_t kMost = std::int64_t{1} << 28;

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
  if (info.frames == 0) return "it has no samples";
  auto sample_at = [&](double seconds) {
    const double at = std::nearbyint(seconds * info.rate);
    return at >= static_cast<double>(info.frames)
               ? info.frames
               : static_cast<std::int64_t>(at);
  };
  const std::int64_t first = sample_at(clip.start);
  const std::int64_t end = clip.end > 0 ? sample_at(clip.end) : info.frames;
  if (first >= end)
    return "it has " +
           Json(static_cast<double>(info.frames) / info.rate).dump() +
           " seconds, and those from " + Json(clip.start).dump() +
           (clip.end > 0 ? " to " + Json(clip.end).dump() : "") + " are wanted";
  part = {.first = first, .frames = end - first};
  return {};
}

/// One channel, or the mean of all, behind `lead` zeros.
void ClipReader::mix(const SoundInfo& info, std::size_t channel,
                     std::int64_t lead, std::int64_t frames) {
  std::ranges::fill(mixed_, 0.0F);
  const auto all = static_cast<std::size_t>(info.channels);
  const float* from = decoded_.data();
  float* to = mixed_.data() + lead;
  const auto count = static_cast<std::size_t>(frames);
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
    return "it has " + std::to_string(info.channels) +
           " channels, expected 1 or 2 for stereo";
  if (!by_soxr(info) && !Resampler::is_possible(info.rate, audio_.rate))
    return "its rate of " + std::to_string(info.rate) +
           " Hz has too little in " + "common with " +
           std::to_string(audio_.rate) + " Hz to be resampled";
  return {};
}

std::string ClipReader::read(const EncodedClip& clip,
                             std::optional<Random> random,
                             std::span<float> to) {
  if (decoder_ == nullptr) decoder_ = make_sound_decoder();
  SoundInfo info;
  std::string path(reinterpret_cast<const char*>(clip.bytes.data()),
                   clip.is_path ? clip.bytes.size() : 0);
  path.resize(std::min(path.size(), path.find('\0')));
  std::string why = clip.is_path ? decoder_->open_path(path, info)
                                 : decoder_->open(clip.bytes, info);
  Part part{};
  if (why.empty()) why = part_of(clip, info, part);
  if (why.empty()) why = fault_of(info);
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
    return "it has " + std::to_string(frames) + " samples of " +
           std::to_string(info.channels) +
           " channels, more than are decoded at once";
  decoded_.resize(static_cast<std::size_t>(frames * info.channels));
  why = decoder_->read(part.first + first, frames, decoded_.data());
  if (!why.empty()) return why;
  mixed_.resize(static_cast<std::size_t>(end - begin));
  const auto each = static_cast<std::size_t>(wanted);
  std::ranges::fill(to, 0.0F);
  for (std::size_t c = 0; c < static_cast<std::size_t>(audio_.channels());
       ++c) {
    mix(info, c, first - begin, frames);
    why = resample(info, crop, length,
                   to.subspan(c * each, static_cast<std::size_t>(count)));
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace penstock
