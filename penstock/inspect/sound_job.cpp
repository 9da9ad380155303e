#include <algorithm>
#include <cmath>
#include <cstdio>

#include "penstock/inspect/class_folder.h"
#include "penstock/inspect/first_files.h"
#include "penstock/inspect/job_text.h"

namespace penstock {
namespace {

constexpr std::int64_t kRate = 16'000, kHop = 256;
constexpr double kLongestRow = 10;  // seconds

/// Tenths of a second, rounded up, as JSON.
std::string shown_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", std::ceil(10 * seconds) / 10);
  return text;
}

std::string lengths_text(double longest, double row) {
  const std::string first =
      "16,000 Hz, mono. Each row is " + shown_seconds(row) + " s long";
  if (longest == 0)
    return first + ", because none of the first sounds could be decoded.";
  if (longest > row)
    return first + ", and some of the first sounds are longer.";
  return first +
         ", as the longest of the first sounds: shorter ones are "
         "filled up with silence.";
}

/// Of a long sound another part in every epoch; a short one is shifted.
std::string moves_text(bool cropped) {
  if (cropped)
    return comment(
               "Augmentation, of the training sounds only: another part "
               "of each long sound in every epoch. Without this line: the "
               "middle, as held-out sounds always are.",
               "      ") +
           "      \"crop\": \"random\",\n      \"augment\": [\n";
  return "      // Augmentation, of the training sounds only, other in every "
         "epoch.\n      \"augment\": [\n" +
         comment("Begins up to a tenth of the row earlier or later.",
                 "        ") +
         "        {\"time_shift\": {\"most\": 0.1, \"fill\": \"zeros\"}},\n";
}

}  // namespace

std::string sound_job_text(const NewJob& job, const ClassFolder& folder,
                           StopFlag stop) {
  const std::string column = folder.column.empty() ? "audio" : folder.column;
  const double longest = longest_sound(job.source, column, stop);
  const double row = std::clamp(longest == 0 ? 1 : longest, 0.1, kLongestRow);
  const auto times = static_cast<std::int64_t>(row * kRate / kHop) + 1;
  return class_source(job, folder, "sound") +
         "  // The model sees spectrograms of 64 mel bands, in decibels.\n"
         "  \"fields\": {\n" +
         comment(lengths_text(longest, row), "    ") +
         "    \"sound\": {\"audio\": {\n" + file_column(folder) +
         "      \"rate\": " + std::to_string(kRate) +
         ", \"seconds\": " + shown_seconds(row) +
         ",\n      \"mel\": {\"n_fft\": 512, \"hop_length\": " +
         std::to_string(kHop) + ", \"n_mels\": 64},\n" +
         moves_text(longest > row) +
         comment("Hides a stretch of time and a range of bands.", "        ") +
         "        {\"spec_augment\": {\n          \"time_masks\": 1, "
         "\"time_width\": " +
         std::to_string(std::max<std::int64_t>(1, times / 8)) +
         ",\n          \"frequency_masks\": 1, \"frequency_width\": 8,\n"
         "          \"value\": -40}}]}},\n" +
         class_field(folder) + class_batches(folder, "sounds") +
         "  \"model\": {\"kind\": \"spectrogram_classifier\",\n"
         "            \"spectrogram\": \"sound\", \"target\": \"class\",\n"
         "            \"width\": 16, \"depth\": 3},\n" +
         train_line(folder.rows / 5,
                    "\"epochs\": 20, \"lr\": 0.002, \"warmup_ratio\": 0.1");
}

}  // namespace penstock
