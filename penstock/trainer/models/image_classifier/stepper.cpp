#include "penstock/trainer/models/image_classifier/network.h"
#include "penstock/trainer/trainer.h"

// A picture, as the batch has it -> [channels, height, width], float32; bytes
// are first made what torchvision's weights want -> the network -> how likely
// each class is.
namespace penstock {
namespace {

constexpr std::int64_t kChannels = 3;

const char* name_of(ImageClassifier::Network network) {
  using Network = ImageClassifier::Network;
  if (network == Network::vit_s16) return "vit_s16";
  return network == Network::resnet18 ? "resnet18" : "resnet50";
}

}  // namespace

std::unique_ptr<Model> make_image_classifier(const ModelSpec& spec,
                                             const FittedFields& data,
                                             const at::TensorOptions& where) {
  const ImageClassifier& settings = image_classifier_of(spec);
  const Output picture =
      target_field(settings.image, data).kind->facts().outputs[0];
  const bool last = picture.row_shape[2] <= 4;
  ClassifierOptions options{
      .input = picture.name,
      .shape = picture.row_shape,
      .rows_last = last,
      .channels = kChannels,
      .channels_last = settings.channels_last,
      .target = target_of_classifier(settings.target, data,
                                     spec.learning.balanced_classes),
      .learning = spec.learning,
      .pictures = true};
  options.answers =
      answers_about_classes(options.target, target_field(settings.target, data),
                            data.statistics_of(settings.target));
  options.description["kind"] = "image_classifier";
  options.description["network"] = name_of(settings.network);
  options.description["seed"] = static_cast<std::int64_t>(settings.seed);
  ImageNetworkOptions network{
      .settings = settings,
      .classes = options.target.classes,
      .height = picture.row_shape[last ? 0 : 1],
      .width = picture.row_shape[last ? 1 : 2],
      .precision = spec.learning.precision,
      .recompute = spec.learning.gradient_checkpointing};
  return make_classifier(
      std::move(options),
      make_image_network(network, where,
                         spec.path.empty()
                             ? nullptr
                             : std::make_shared<WeightFiles>(spec.path)),
      where.device());
}

}  // namespace penstock
