#include "penstock/transforms/audio/mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr double kPi = std::numbers::pi;

// Slaney's scale (Auditory Toolbox, 1998): linear up to 1000 Hz, then
// logarithmic.
constexpr double kLinear = 200.0 / 3, kFrom = 1000.0;
const double kLogStep = std::log(6.4) / 27;

// The scale of HTK is m = 2595 log10(1 + f / 700). Slaney's has 3 mels for each
// 200 Hz up to 1000 Hz (15 mels), and from there 27 for each factor of 6.4.
double mel_of(double hertz, bool slaney) {
  if (!slaney) return 2595 * std::log10(1 + hertz / 700);
  if (hertz < kFrom) return hertz / kLinear;
  return kFrom / kLinear + std::log(hertz / kFrom) / kLogStep;
}

float hertz_of(float mel, bool slaney) {
  auto rounded = [](double exact) { return static_cast<float>(exact); };
  if (!slaney)
    return 700.0F *
           (rounded(std::pow(10.0, static_cast<double>(mel / 2595.0F))) - 1.0F);
  const float from = rounded(kFrom / kLinear);
  return mel < from ? mel * rounded(kLinear)
                    : rounded(kFrom) * rounded(std::exp(static_cast<double>(
                                           rounded(kLogStep) * (mel - from))));
}

/// torch.linspace(begin, end, count)[at]
float evenly(float begin, float end, std::size_t count, std::size_t at) {
  const float step = (end - begin) / static_cast<float>(count - 1);
  return at < count / 2
             ? std::fma(step, static_cast<float>(at), begin)
             : std::fma(-step, static_cast<float>(count - at - 1), end);
}

// w(turns) = exp(-2 pi i turns), as two numbers.
void append_turn(double turns, std::vector<double>& to) {
  to.push_back(std::cos(2 * kPi * turns));
  to.push_back(-std::sin(2 * kPi * turns));
}

/// 4 first, since it is the cheapest.
std::size_t factor_of(std::size_t n) {
  for (std::size_t radix : {4U, 2U, 3U, 5U})
    if (n % radix == 0) return radix;
  for (std::size_t radix = 7; radix * radix <= n; radix += 2)
    if (n % radix == 0) return radix;
  return n;
}

/// By eight at a time: one after the other, each would wait for the last.
float largest(std::span<const float> values) {
  constexpr std::size_t kEach = 8;
  std::array<float, kEach> most;
  most.fill(values[0]);
  std::size_t at = 0;
  for (; at + kEach <= values.size(); at += kEach)
    for (std::size_t i = 0; i < kEach; ++i)
      most[i] = std::max(most[i], values[at + i]);
  for (; at < values.size(); ++at) most[0] = std::max(most[0], values[at]);
  return *std::ranges::max_element(most);
}

}  // namespace

MelSpectrogram::MelSpectrogram(const Audio& audio, const lanes::Code& code)
    : audio_(audio),
      mel_(audio.mel),
      code_(code),
      n_fft_(static_cast<std::size_t>(mel_.n_fft)),
      bins_(n_fft_ / 2 + 1) {
  make_window();
  plan_transform();
  make_bands();
  if (mel_.n_mfcc > 0) make_coefficients();
  spectrogram_ = {.n_fft = n_fft_,
                  .hop = static_cast<std::size_t>(mel_.hop_length),
                  .window = window_.data(),
                  .steps = steps_.data(),
                  .step_count = steps_.size(),
                  .packed = n_fft_ % 2 == 0,
                  .unpack = unpack_.data(),
                  .squared = mel_.squared,
                  .bands = static_cast<std::size_t>(mel_.n_mels),
                  .firsts = firsts_.data(),
                  .counts = counts_.data(),
                  .weights = weights_.data(),
                  .log = static_cast<int>(mel_.log)};
  scratch_ = allocate_aligned(code_.scratch(n_fft_) * sizeof(double));
  if (scratch_ == nullptr) throw std::bad_alloc();
}

// torch.hann_window: in float32 as there, since the window's last bits are seen
// in a quiet bin beside loud ones.
void MelSpectrogram::make_window() {
  const auto win = static_cast<std::size_t>(mel_.win_length);
  const auto step = static_cast<float>(2 * kPi / static_cast<double>(win));
  window_.assign(n_fft_, 0.0);
  for (std::size_t i = 0; i < win; ++i) {
    const float angle = static_cast<float>(i) * step;
    const auto cosine =
        static_cast<float>(std::cos(static_cast<double>(angle)));
    // Two bins of a packed transform are added up without their half.
    window_[(n_fft_ - win) / 2 + i] =
        static_cast<double>(-0.5F * cosine + 0.5F) *
        (n_fft_ % 2 == 0 ? 0.5 : 1);
  }
}

// A mixed-radix transform in Stockham's order. With n = radix * size, one step
// computes for each q < size
//   y[q, r] = w(q r / n) * sum over j of x[q + size j] w(j r / radix)
// and leaves `radix` transforms of `size`, `stride` times `radix` side by side.
// The work is n times the sum of its prime factors, so only a large prime is
// slow.
//
// A real frame of even length is transformed as n / 2 complex numbers, which
// `unpack_` then separates into the bins of its even and its odd samples.
void MelSpectrogram::plan_transform() {
  const std::size_t points = n_fft_ % 2 == 0 ? n_fft_ / 2 : n_fft_;
  std::size_t stride = 1;
  for (std::size_t left = points; left > 1;) {
    const std::size_t radix = factor_of(left);
    const std::size_t size = left / radix;
    auto& twiddles = factors_.emplace_back();
    for (std::size_t q = 0; q < size; ++q)
      for (std::size_t r = 1; r < radix; ++r)
        append_turn(static_cast<double>(q * r) / static_cast<double>(left),
                    twiddles);
    auto& roots = factors_.emplace_back();
    for (std::size_t r = 0; r < radix; ++r)
      append_turn(static_cast<double>(r) / static_cast<double>(radix), roots);
    steps_.push_back({.radix = radix,
                      .size = size,
                      .stride = stride,
                      .twiddles = nullptr,
                      .roots = nullptr});
    stride *= radix;
    left = size;
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    steps_[s].twiddles = factors_[2 * s].data();
    steps_[s].roots = factors_[2 * s + 1].data();
  }
  for (std::size_t k = 0; k < bins_; ++k)
    append_turn(static_cast<double>(k) / static_cast<double>(n_fft_), unpack_);
}

// torchaudio.functional.melscale_fbanks: triangles over the bins' frequencies,
// in float32 as there, since what that rounds is seen in narrow bands.
// Band b rises from edge b to edge b + 1 and falls to edge b + 2; the edges are
// evenly apart in mels. Slaney's norm divides by half the width in Hz, so that
// all triangles have the same area. Only the weights above 0 are kept.
void MelSpectrogram::make_bands() {
  const bool slaney = mel_.slaney_scale;
  const auto bands = static_cast<std::size_t>(mel_.n_mels);
  const auto least = static_cast<float>(mel_of(mel_.f_min, slaney));
  const auto most = static_cast<float>(mel_of(mel_.f_max, slaney));
  std::vector<float> edges;
  for (std::size_t at = 0; at < bands + 2; ++at)
    edges.push_back(hertz_of(evenly(least, most, bands + 2, at), slaney));
  const auto nyquist = static_cast<float>(audio_.rate / 2);
  for (std::size_t band = 0; band < bands; ++band) {
    const float low = edges[band], mid = edges[band + 1],
                high = edges[band + 2];
    const float scale = mel_.slaney_norm ? 2.0F / (high - low) : 1.0F;
    std::int32_t first = 0, count = 0;
    for (std::size_t k = 0; k < bins_; ++k) {
      const float hertz = evenly(0, nyquist, bins_, k);
      const float weight =
          std::min(-(low - hertz) / (mid - low), (high - hertz) / (high - mid));
      if (!(weight > 0)) continue;
      if (count == 0) first = static_cast<std::int32_t>(k);
      ++count;
      weights_.push_back(static_cast<double>(weight * scale));
    }
    firsts_.push_back(first);
    counts_.push_back(count);
  }
}

// torchaudio.functional.create_dct, norm "ortho".
// c[k] = sqrt(2 / n) sum over m of x[m] cos(pi / n (m + 1/2) k), and c[0]
// divided by sqrt(2): the orthonormal DCT-II.
void MelSpectrogram::make_coefficients() {
  const auto bands = static_cast<double>(mel_.n_mels);
  for (std::int64_t c = 0; c < mel_.n_mfcc; ++c)
    for (std::int64_t band = 0; band < mel_.n_mels; ++band) {
      double value = std::cos(kPi / bands * (static_cast<double>(band) + 0.5) *
                              static_cast<double>(c));
      value *= std::sqrt(2 / bands) * (c == 0 ? std::sqrt(0.5) : 1);
      coefficients_.push_back(static_cast<float>(value));
    }
}

/// Reflects the ends, so that the first frame is centred on the first sample.
void MelSpectrogram::pad(std::span<const float> channel) {
  const std::size_t by = n_fft_ / 2;
  padded_.resize(channel.size() + 2 * by + n_fft_);
  float* to = padded_.data();
  for (std::size_t i = 0; i < by; ++i) to[i] = channel[by - i];
  std::copy(channel.begin(), channel.end(), to + by);
  to += by + channel.size();
  for (std::size_t i = 0; i < by; ++i) to[i] = channel[channel.size() - 2 - i];
  std::fill_n(to + by, n_fft_, 0.0F);
}

/// As torchaudio's AmplitudeToDB, of either kind, from 10 log10.
/// Powers are 10 log10 x, amplitudes 20 log10 x. The bound `top_db` below the
/// loudest value is that of the whole clip, so it can be applied only at the
/// end.
void MelSpectrogram::finish_decibels(std::span<float> decibels) const {
  if (mel_.log != Mel::Log::decibels) return;
  if (mel_.of_amplitudes())
    for (float& value : decibels) value *= 2;
  if (mel_.top_db <= 0) return;
  const float least = largest(decibels) - static_cast<float>(mel_.top_db);
  for (float& value : decibels) value = std::max(value, least);
}

void MelSpectrogram::run(std::span<const float> wave, std::span<float> to) {
  const auto channels = static_cast<std::size_t>(audio_.channels());
  const auto frames = static_cast<std::size_t>(audio_.frames());
  const auto bands = static_cast<std::size_t>(mel_.n_mels);
  const std::size_t each = bands * frames;
  const bool cepstral = mel_.n_mfcc > 0;
  if (cepstral) bands_.resize(channels * each);
  const std::span<float> out = cepstral ? std::span<float>(bands_) : to;
  const std::size_t samples = wave.size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    pad(wave.subspan(c * samples, samples));
    code_.spectrogram(spectrogram_, padded_.data(), frames,
                      reinterpret_cast<double*>(scratch_.get()),
                      out.data() + c * each);
  }
  finish_decibels(out);
  if (!cepstral) return;
  const auto rows = static_cast<std::size_t>(mel_.n_mfcc);
  for (std::size_t c = 0; c < channels; ++c)
    code_.product(coefficients_.data(), bands_.data() + c * each, rows, bands,
                  frames, to.data() + c * rows * frames);
}

}  // namespace penstock
