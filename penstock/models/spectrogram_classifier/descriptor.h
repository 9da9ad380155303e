#pragma once

#include <cstdint>
#include <string>

#include "penstock/models/model.h"

namespace penstock {

/// The class of a spectrogram: numbers over frequency and time.
struct SpectrogramClassifier {
  std::string spectrogram;  ///< a field of [bands, times], or of [values]
  std::string target;       ///< a category
  std::int64_t width = 32;  ///< channels of the first layer; a multiple of 8
  std::int64_t depth = 3;   ///< stages, each of which halves both sides
  std::uint64_t seed = 0;   ///< of the first weights
};

ModelKind spectrogram_classifier_model();

/// The settings of a model of this kind; an internal error for another kind's.
const SpectrogramClassifier& spectrogram_classifier_of(const ModelSpec& model);

}  // namespace penstock
