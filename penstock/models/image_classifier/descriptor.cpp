#include "penstock/models/image_classifier/descriptor.h"

#include <algorithm>
#include <limits>

#include "penstock/models/class_target.h"

namespace penstock {
namespace {

using Network = ImageClassifier::Network;

const SettingsTable<ImageClassifier>& image_classifier_settings() {
  static const SettingsTable<ImageClassifier> table =
      SettingsTable<ImageClassifier>()
          .text("image", &ImageClassifier::image,
                "Field of the pictures, [channels, height, width]")
          .required()
          .text("target", &ImageClassifier::target,
                "Field of the class: a category or a multi_hot field")
          .required()
          .choice("network", &ImageClassifier::network,
                  {{"resnet18", Network::resnet18},
                   {"resnet50", Network::resnet50},
                   {"vit_s16", Network::vit_s16}},
                  "Architecture, with torchvision's definition and names of "
                  "weights")
          .boolean("channels_last", &ImageClassifier::channels_last,
                   "Whether tensors are stored with their channels last, which "
                   "makes convolutions faster")
          .integer("seed", &ImageClassifier::seed, 0,
                   std::numeric_limits<std::int64_t>::max(),
                   "Seed of the initial weights");
  return table;
}

void check_picture(const Spec& spec, const Field& field, Network network) {
  const Output picture = field.kind->facts().outputs[0];
  if (picture.lengths != Lengths::equal || picture.row_shape.size() != 3)
    spec.refuse("image",
                "field '" + field.name +
                    "' does not hold pictures: [channels, height, width]",
                "name a field of kind \"image\"");
  if (network != Network::vit_s16) return;
  const bool last = picture.row_shape[2] <= 4;
  for (std::size_t i = last ? 0 : 1; i < (last ? 2U : 3U); ++i)
    if (picture.row_shape[i] % 16 != 0)
      spec.refuse(
          "network",
          "\"vit_s16\" cuts pictures into squares of 16 pixels, but field '" +
              field.name + "' has a side of " +
              std::to_string(picture.row_shape[i]),
          "make the field's \"size\" a multiple of 16");
}

void check_fields(const Spec& spec, const ModelSpec& model,
                  const std::vector<Field>& fields) {
  const ImageClassifier& settings = image_classifier_of(model);
  check_picture(spec, field_named(spec, "image", settings.image, fields),
                settings.network);
  check_class_target(spec, settings.target, fields);
}

}  // namespace

ModelKind image_classifier_model() {
  return {.name = "image_classifier",
          .about =
              "Predicts the class of a picture, with a ResNet or a Vision "
              "Transformer",
          .settings = with_shared(
              SettingsTable<ModelSpec>({.kind = "image_classifier"})
                  .own(&ModelSpec::own, image_classifier_settings())),
          .check = check_fields,
          .switches = class_switches(),
          .metrics =
              [](const ModelSpec& model, const std::vector<Field>& fields) {
                const std::string& target = image_classifier_of(model).target;
                return class_metric_names(
                    *std::ranges::find(fields, target, &Field::name), false);
              },
          .reads_path = true,
          .without_scan = true};
}

const ImageClassifier& image_classifier_of(const ModelSpec& model) {
  const auto* settings = std::any_cast<ImageClassifier>(&model.own);
  PENSTOCK_ASSERT(settings != nullptr, "the model is an image_classifier");
  return *settings;
}

}  // namespace penstock
