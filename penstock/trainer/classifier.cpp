#include "penstock/trainer/classifier.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include "penstock/trainer/autocast.h"
#include "penstock/trainer/class_task.h"
#include "penstock/trainer/counted_rows.h"
#include "penstock/trainer/worst_pictures.h"

namespace penstock {
namespace {

using Mode = ClassNetwork::Mode;

class Classifier final : public Model {
 public:
  Classifier(ClassifierOptions options, std::unique_ptr<ClassNetwork> network,
             at::Device device)
      : o_(std::move(options)),
        network_(std::move(network)),
        device_(device),
        task_(make_class_task(o_.target, o_.learning.label_smoothing,
                              o_.balance, device)) {
    // Of the colours of ImageNet, as torchvision's weights want them.
    mean_ = at::tensor({0.485F, 0.456F, 0.406F}).view({1, 3, 1, 1}).to(device);
    deviation_ =
        at::tensor({0.229F, 0.224F, 0.225F}).view({1, 3, 1, 1}).to(device);
    if (device.is_cuda()) at::globalContext().setBenchmarkCuDNN(true);
    const Layers& layers = network_->layers();
    facts_ = {.parameters = layers.parameters(),
              .buffers = layers.buffers(),
              .numbers = layers.size(),
              .bytes = layers.bytes(),
              .counts = true,
              .smoothing = o_.learning.label_smoothing,
              .no_graphs = "the host chooses which rows of a batch count",
              .in_force = in_force(),
              .answers = o_.answers,
              .description = description()};
  }

  // Rows that do not count must not enter the statistics of batches: they are
  // left out. A batch of no other rows leaves no trace, and gradients of 0.
  MeanLoss loss(const BatchRows& batch, const DrawnFor& drawn) override {
    const CountedRows rows(batch, drawn, device_);
    const at::Tensor input = rows.of(tensor_of(batch, o_.input));
    const Truth all = truth_of(batch, o_.target);
    return task_->loss(
        answers_of(input, input.size(0),
                   rows.none() ? Mode::trial : Mode::learn),
        {.value = rows.of(all.value), .weight = rows.of(all.weight)});
  }

  bool begin_recompute() override { return network_->begin_recompute(); }

  at::Tensor look(const BatchRows& batch) override {
    const at::Tensor input = tensor_of(batch, o_.input);
    at::Tensor answers = answers_of(input, batch.rows(), Mode::look);
    at::Tensor shares = o_.target.many ? answers.sigmoid() : answers.softmax(1);
    // Last: rows that were counted cannot be looked at again.
    if (has_tensor(batch, o_.target.name)) {
      const at::Tensor losses = task_->look(answers, batch);
      if (o_.pictures) keep_pictures(input, losses, batch.ids());
    }
    return shares;
  }
  Validated seen(RankShare* ranks) override {
    Validated found = task_->seen(ranks);
    if (o_.pictures && !found.details.is_null()) worst_.take(found.details);
    return found;
  }

 private:
  /// The rows are counted already: what has no memory goes without pictures.
  void keep_pictures(const at::Tensor& input, const at::Tensor& losses,
                     std::span<const SampleId> samples) try {
    worst_.add(channels_first(input), losses, samples);
  } catch (const c10::OutOfMemoryError&) {
    log(LogLevel::debug, "no memory for pictures of the worst rows");
  }

  std::vector<SwitchInForce> in_force() const {
    const bool recompute = o_.learning.gradient_checkpointing;
    const char* weights = o_.learning.balanced_classes ? "balanced" : "none";
    return {{.name = "gradient_checkpointing",
             .asked = recompute,
             .got = recompute},
            {.name = "class_weights", .asked = weights, .got = weights}};
  }
  Json description() const {
    Json json = o_.description;
    json["target"] = o_.target.name;
    json["classes"] = o_.target.classes;
    json["input"] = o_.input;
    return json;
  }

  at::Tensor channels_first(const at::Tensor& input) const {
    return o_.rows_last && input.dim() == 4 ? input.permute({0, 3, 1, 2})
                                            : input;
  }

  /// [rows, channels, height, width]: what has fewer dimensions has one channel
  /// and, if need be, one line.
  at::Tensor planes(const at::Tensor& input, std::int64_t rows) const {
    at::Tensor x = channels_first(input);
    if (x.dim() == 2) x = x.unsqueeze(1);
    if (x.dim() == 3) x = x.unsqueeze(1);
    PENSTOCK_ASSERT(x.size(0) == rows, "a batch has its rows");
    const bool bytes = x.scalar_type() == at::kByte;
    x = x.to(at::kFloat);
    if (x.size(1) == 1 && o_.channels > 1)
      x = x.expand({rows, o_.channels, x.size(2), x.size(3)});
    if (bytes) {
      x = x / 255;
      if (o_.channels == 3) x = (x - mean_) / deviation_;
    }
    return o_.channels_last ? x.contiguous(at::MemoryFormat::ChannelsLast)
                            : x.contiguous();
  }

  at::Tensor answers_of(const at::Tensor& input, std::int64_t rows,
                        Mode mode) const {
    at::Tensor x = planes(input, rows);
    const Autocast cast(device_, o_.learning.precision);
    return (*network_)(x, mode).to(at::kFloat);
  }

  const ClassifierOptions o_;
  const std::unique_ptr<ClassNetwork> network_;
  const at::Device device_;
  const std::unique_ptr<ClassTask> task_;
  WorstPictures worst_;
  at::Tensor mean_, deviation_;
};

}  // namespace

std::unique_ptr<Model> make_classifier(ClassifierOptions options,
                                       std::unique_ptr<ClassNetwork> network,
                                       at::Device device) {
  return std::make_unique<Classifier>(std::move(options), std::move(network),
                                      device);
}

}  // namespace penstock
