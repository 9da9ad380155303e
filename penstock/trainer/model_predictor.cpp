#include <c10/core/GradMode.h>

#include <utility>

#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/serial_stream.h"
#include "penstock/trainer/state.h"
#include "penstock/trainer/torch_error.h"

namespace penstock {
namespace {

class ModelPredictor final : public Predictor {
 public:
  ModelPredictor(const ModelSpec& spec, const FittedFields& data,
                 Device& device, at::Device torch, MakeModel make)
      : Predictor({}), turns_(device, torch), model_(turns_.now([&] {
          return make(spec, data, at::TensorOptions(at::kFloat).device(torch));
        })) {
    facts_ = model_->facts().answers;
  }
  ~ModelPredictor() override { turns_.finish(); }

  void use(const ModelState& weights) override {
    in_torch("reading the weights of the model",
             [&] { turns_.now([&] { copy_state(weights, tensors()); }); });
  }

  std::vector<double> predict(
      const std::shared_ptr<Batch>& batch,
      const std::shared_ptr<Session>& session) override {
    return in_torch("making predictions", [&] {
      const at::NoGradGuard no_graph;
      at::Tensor answers =
          turns_.on(session->stream(), [&] { return model_->look(*batch); });
      answers = turns_.now(
          [&] { return answers.to(at::kDouble).to(at::kCPU).contiguous(); });
      const double* first = answers.const_data_ptr<double>();
      return std::vector<double>(first, first + answers.numel());
    });
  }

  std::vector<std::vector<std::int32_t>> generate(
      const std::shared_ptr<Batch>& batch,
      const std::shared_ptr<Session>& session, std::int64_t first,
      const Generation& settings) override {
    return in_torch("generating texts", [&] {
      return turns_.on(session->stream(), [&] {
        return model_->generate(*batch, first, settings);
      });
    });
  }

  Json measured() override {
    return in_torch("measuring the predictions", [&] {
      return turns_.now([&] { return model_->seen().metrics; });
    });
  }

 private:
  std::vector<Parameter> tensors() const {
    std::vector<Parameter> all;
    for (const auto* some :
         {&model_->facts().parameters, &model_->facts().buffers})
      for (const Parameter& one : *some)
        all.push_back({"model." + one.name, one.value});
    return all;
  }

  SerialStream turns_;
  const std::unique_ptr<Model> model_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> Model::generate(const Batch&,
                                                       std::int64_t,
                                                       const Generation&) {
  throw no_text_error();
}

std::unique_ptr<Predictor> make_model_predictor(const ModelSpec& spec,
                                                const FittedFields& data,
                                                Device& device,
                                                MakeModel make) {
  return std::make_unique<ModelPredictor>(spec, data, device,
                                          torch_device(device), make);
}

}  // namespace penstock
