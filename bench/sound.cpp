// What does a log-mel spectrogram cost, and what does SpecAugment add to
// copying a batch?
//
// (a) Waveforms of 10 s at 16 kHz become log-mel spectrograms (n_fft 400, hop
// 160, 80 bands, dB) as an `audio` field makes them, and (b) waveforms of 44.1
// kHz are resampled to 16 kHz. bench/peers/sound.py runs this in turns with
// torchaudio. (c) Batches of stored rows, 8,192 x 256 and 128 x [128, 128], are
// copied into a batch unchanged, and with two masks of time (and of
// frequency), in turns. All on one thread, of which processor time counts.
//
//     bench_sound [CLIPS [REPEATS [WAVES SPECTRA]]]
//
// WAVES is a file of CLIPS waveforms, float32; SPECTRA gets what comes of them.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "bench/measure.h"
#include "penstock/base/aligned.h"
#include "penstock/base/error.h"
#include "penstock/sampling/sampling.h"
#include "penstock/transforms/array/array.h"
#include "penstock/transforms/audio/mel.h"
#include "penstock/transforms/audio/resampler.h"

namespace penstock {
namespace {

constexpr std::size_t kSamples = 160'000;

std::vector<float> waves_of(std::size_t clips, const char* path) {
  std::vector<float> waves(clips * kSamples);
  if (path != nullptr) {
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(waves.data()),
              static_cast<std::streamsize>(waves.size() * sizeof(float)));
    PENSTOCK_ASSERT(file.gcount() == static_cast<std::streamsize>(
                                         waves.size() * sizeof(float)),
                    "the file has that many waveforms");
    return waves;
  }
  Random random(1, 0, 0, 0);
  for (float& sample : waves)
    sample = static_cast<float>(0.1 * random.normal());
  return waves;
}

void measure_sound(Json& results, std::size_t clips, int repeats,
                   const std::vector<float>& waves, const char* to) {
  Audio audio;
  audio.seconds = 10;
  audio.has_mel = true;
  audio.mel.win_length = 400;
  audio.mel.hop_length = 160;
  audio.mel.n_mels = 80;
  audio.mel.f_max = 8000;
  MelSpectrogram mel(audio);
  const auto elements =
      static_cast<std::size_t>(elements_of(audio.row_shape()));
  std::vector<float> spectra(clips * elements);
  const Resampler resampler(44'100, 16'000);
  const auto [first, end] = resampler.needed(0, 44'100);
  std::vector<float> loud(static_cast<std::size_t>(end - first), 0.25F);
  std::vector<float> quiet(44'100);
  const std::vector<Repeats> found = in_turns(
      repeats,
      {[&] {
         return cpu_seconds([&] {
                  for (std::size_t c = 0; c < clips; ++c)
                    mel.run(std::span(waves).subspan(c * kSamples, kSamples),
                            std::span(spectra).subspan(c * elements, elements));
                }) /
                static_cast<double>(clips) * 1e3;
       },
       [&] {
         return cpu_seconds([&] { resampler.run(loud, 0, quiet); }) * 1e3;
       }});
  Json row(Json::Object{});
  row["workload"] = "log-mel of 10 s at 16 kHz";
  row["cpu_ms_per_clip"] = found[0].json();
  results.push_back(row);
  row = Json(Json::Object{});
  row["workload"] = "44.1 kHz to 16 kHz, 44,100 samples out";
  row["cpu_ms_per_clip"] = found[1].json();
  results.push_back(row);
  if (to != nullptr)
    std::ofstream(to, std::ios::binary)
        .write(reinterpret_cast<const char*>(spectra.data()),
               static_cast<std::streamsize>(spectra.size() * sizeof(float)));
}

/// Rows of a table, a batch of them as a shuffle has them, and its place in a
/// slot, in memory as that of tables and slots is. No cache holds the table.
struct Batch {
  Batch(std::size_t count, const Shape& shape)
      : bytes(static_cast<std::size_t>(elements_of(shape)) * sizeof(float)),
        table_rows(kTableBytes / bytes),
        stored(allocate_aligned(table_rows * bytes)),
        slot(allocate_aligned(count * bytes)),
        rows(count) {
    PENSTOCK_ASSERT(stored != nullptr && slot != nullptr, "there is memory");
    std::memset(stored.get(), 1, table_rows * bytes);
    std::memset(slot.get(), 0, count * bytes);
  }
  /// Others, in each epoch.
  void draw(std::int64_t epoch) {
    const auto table = static_cast<std::int64_t>(table_rows);
    const Order order{.samples = table, .seed = 1, .batch_size = 1};
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const SampleId sample =
          sample_at(order, epoch, static_cast<std::int64_t>(r));
      rows[r].tensors = stored.get() + static_cast<std::size_t>(sample) * bytes;
      rows[r].range.sample = sample;
    }
  }
  static constexpr std::size_t kTableBytes = std::size_t{1} << 29;
  std::size_t bytes, table_rows;
  AlignedBytes stored, slot;
  std::vector<StoredRow> rows;
};

void measure_masks(Json& results, const char* workload, std::size_t count,
                   Shape shape, SpecAugment masks, int repeats) {
  Batch batch(count, shape);
  Arrays array{.column = "x", .shape = shape};
  array.augment = {masks};
  const auto finisher = make_array_finisher(array, true);
  const TensorPlace place{.data = batch.slot.get(), .bytes = batch.bytes};
  std::int64_t epoch = 0;
  const std::vector<Repeats> found = in_turns(
      repeats, {[&] {
                  batch.draw(epoch++);
                  return cpu_seconds([&] {
                           for (std::size_t r = 0; r < batch.rows.size(); ++r)
                             std::memcpy(place.row(r), batch.rows[r].tensors,
                                         batch.bytes);
                         }) *
                         1e3;
                },
                [&] {
                  batch.draw(epoch++);
                  return cpu_seconds([&] {
                           finisher->finish(batch.rows,
                                            {.seed = 1, .epoch = epoch},
                                            std::span(&place, 1));
                         }) *
                         1e3;
                }});
  Json row(Json::Object{});
  row["workload"] = workload;
  row["cpu_ms_copied"] = found[0].json();
  row["cpu_ms_copied_and_masked"] = found[1].json();
  row["added"] = found[1].median() / found[0].median() - 1;
  row["must_reach"] = "added 0.1 at most";
  results.push_back(row);
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  const auto clips =
      static_cast<std::size_t>(argument(count, arguments, 1, 20));
  const auto repeats = static_cast<int>(argument(count, arguments, 2, 9));
  const char* waves = count > 3 ? arguments[3] : nullptr;
  const char* spectra = count > 4 ? arguments[4] : nullptr;
  Json result = result_of("sound",
                          "What does a log-mel spectrogram cost, and what does "
                          "SpecAugment add to copying a batch?",
                          count, arguments);
  Json results(Json::Array{});
  measure_sound(results, clips, repeats, waves_of(clips, waves), spectra);
  if (waves == nullptr) {
    measure_masks(results, "8,192 x 256", 8192, {256},
                  {.time_masks = 2, .time_width = 20}, 3 * repeats);
    measure_masks(results, "128 x [128, 128]", 128, {128, 128},
                  {.time_masks = 2,
                   .time_width = 20,
                   .frequency_masks = 2,
                   .frequency_width = 16},
                  9 * repeats);
  }
  result["results"] = std::move(results);
  return finish(result);
}
