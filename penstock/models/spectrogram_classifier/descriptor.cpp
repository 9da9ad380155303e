#include "penstock/models/spectrogram_classifier/descriptor.h"

#include <algorithm>
#include <limits>

#include "penstock/models/class_target.h"

namespace penstock {
namespace {

const SettingsTable<SpectrogramClassifier>& spectrogram_classifier_settings() {
  using Of = SpectrogramClassifier;
  static const SettingsTable<Of> table =
      SettingsTable<Of>()
          .text("spectrogram", &Of::spectrogram,
                "Field of numbers, [bands, times] or [channels, bands, times], "
                "or [values]")
          .required()
          .text("target", &Of::target,
                "Field of the class: a category or a multi_hot field")
          .required()
          .integer("width", &Of::width, 8, 1024, "Channels of the first layer")
          .multiple_of(8)
          .integer("depth", &Of::depth, 1, 6,
                   "Number of stages. Each has two convolutions, halves both "
                   "sides and doubles the channels")
          .integer("seed", &Of::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the initial weights");
  return table;
}

void check_fields(const Spec& spec, const ModelSpec& model,
                  const std::vector<Field>& fields) {
  const SpectrogramClassifier& settings = spectrogram_classifier_of(model);
  check_class_target(spec, settings.target, fields);
  const Field& field =
      field_named(spec, "spectrogram", settings.spectrogram, fields);
  const Output output = field.kind->facts().outputs[0];
  const std::size_t sides = output.row_shape.size();
  if (output.lengths != Lengths::equal || sides < 1 || sides > 3)
    spec.refuse("spectrogram",
                "field '" + field.name +
                    "' does not hold numbers of one shape, [bands, times]",
                "name a field of kind \"array\" or \"audio\", or of columns");
}

}  // namespace

ModelKind spectrogram_classifier_model() {
  return {.name = "spectrogram_classifier",
          .about =
              "Predicts the class of a spectrogram, with a small convolutional "
              "network",
          .settings = with_shared(
              SettingsTable<ModelSpec>({.kind = "spectrogram_classifier"})
                  .own(&ModelSpec::own, spectrogram_classifier_settings())),
          .check = check_fields,
          .switches = class_switches(),
          .metrics =
              [](const ModelSpec& model, const std::vector<Field>& fields) {
                const std::string& target =
                    spectrogram_classifier_of(model).target;
                return class_metric_names(
                    *std::ranges::find(fields, target, &Field::name), true);
              },
          .reads_path = true,
          .without_scan = true};
}

const SpectrogramClassifier& spectrogram_classifier_of(const ModelSpec& model) {
  const auto* settings = std::any_cast<SpectrogramClassifier>(&model.own);
  PENSTOCK_ASSERT(settings != nullptr, "the model is a spectrogram_classifier");
  return *settings;
}

}  // namespace penstock
