#include <c10/core/GradMode.h>

#include <utility>

#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/parts_of_batch.h"
#include "penstock/trainer/ranks/rank_share.h"
#include "penstock/trainer/serial_stream.h"
#include "penstock/trainer/state.h"
#include "penstock/trainer/torch_error.h"
#include "penstock/trainer/torch_memory.h"

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
      std::vector<at::Tensor> answers;
      in_parts(
          BatchRows(*batch), most_,
          [&](const BatchRows& rows) {
            answers.push_back(turns_.on(session->stream(),
                                        [&] { return model_->look(rows); }));
          },
          [](std::int64_t from, std::int64_t to) {
            log(LogLevel::warning,
                "out of memory: predictions of " + std::to_string(to) +
                    " rows at once, not " + std::to_string(from));
          });
      return numbers_in(answers);
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

  Json measured(RankGroup* ranks) override {
    return in_torch("measuring the predictions", [&] {
      return turns_.now([&] {
        if (ranks == nullptr) return model_->seen(nullptr).metrics;
        RankShare share(*ranks);
        return model_->seen(&share).metrics;
      });
    });
  }

 private:
  std::vector<double> numbers_in(const std::vector<at::Tensor>& answers) {
    std::vector<double> all;
    for (const at::Tensor& some : answers) {
      const at::Tensor here = turns_.now(
          [&] { return some.to(at::kDouble).to(at::kCPU).contiguous(); });
      const double* first = here.const_data_ptr<double>();
      all.insert(all.end(), first, first + here.numel());
    }
    return all;
  }

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
  std::int64_t most_ = INT64_MAX;  // rows at once
};

}  // namespace

std::vector<std::vector<std::int32_t>> Model::generate(const BatchRows&,
                                                       std::int64_t,
                                                       const Generation&) {
  throw no_text_error();
}

std::unique_ptr<Predictor> make_model_predictor(const ModelSpec& spec,
                                                const FittedFields& data,
                                                Device& device,
                                                MakeModel make) {
  const at::Device torch = torch_device(device);
  limit_gpu_tensors(device, torch);
  return std::make_unique<ModelPredictor>(spec, data, device, torch, make);
}

}  // namespace penstock
