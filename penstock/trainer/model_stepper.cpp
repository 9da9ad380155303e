#include "penstock/trainer/model_stepper.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "penstock/trainer/adamw.h"
#include "penstock/trainer/averages.h"
#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/buffers.h"
#include "penstock/trainer/gradients.h"
#include "penstock/trainer/memory_use.h"
#include "penstock/trainer/pending_losses.h"
#include "penstock/trainer/serial_stream.h"
#include "penstock/trainer/state.h"
#include "penstock/trainer/torch_error.h"

// A step, from the batch to the new weights. The batch's tensors are borrowed
// where they lie -> the model's loss of them -> backward() leaves the gradients
// -> AdamW clips them and moves the weights, at the rate that the schedule has
// for the step's number -> the loss is copied to the host behind all that. It
// is queued on the batch's stream; only who asks for a number waits.
namespace penstock {
namespace {

// What is drawn for a step is sent in at most two copies; this many steps may
// be in flight.
constexpr std::size_t kStagedSteps = 8;

/// Names with a prefix: a checkpoint distinguishes weights from the optimiser's
/// own.
void append(std::vector<Parameter>& all, const std::string& prefix,
            const std::vector<Parameter>& some) {
  for (const Parameter& one : some)
    all.push_back({prefix + one.name, one.value});
}

std::int64_t bytes_of(const std::vector<Parameter>& parameters) {
  std::int64_t bytes = 0;
  for (const Parameter& one : parameters)
    bytes += static_cast<std::int64_t>(one.value.nbytes());
  return bytes;
}

class ModelStepper final : public Stepper {
 public:
  ModelStepper(const ModelSpec& spec, const FittedFields& data, Device& device,
               at::Device torch, std::int64_t steps, MakeModel make)
      : Stepper({.has_model = true}),
        threads_(threads_of(spec)),
        schedule_(schedule_of(spec.learning, steps)),
        turns_(device, torch),
        staging_(device, 2 * kStagedSteps),
        losses_(device),
        learning_(spec.learning),
        on_gpu_(torch.is_cuda()),
        model_(turns_.now([&] {
          follow_tf32();
          return make(spec, data, at::TensorOptions(at::kFloat).device(torch));
        })),
        optimizer_(turns_.now([&] {
          return AdamW(model_->facts().parameters,
                       {.weight_decay = spec.learning.weight_decay,
                        .clip_norm = spec.learning.clip_norm});
        })),
        gradients_(model_->facts().parameters),
        scale_(turns_.now([&] {
          return LossScale(learning_.precision == Dtype::float16,
                           at::TensorOptions().device(torch));
        })),
        counted_(turns_.now([&] {
          return CountedSteps(
              model_->facts().counts && learning_.accumulate > 1,
              at::TensorOptions().device(torch));
        })),
        averages_(turns_.now([&] {
          return Averages(model_->facts().parameters, learning_.ema);
        })),
        buffers_(turns_.now([&] { return Buffers(model_->facts().buffers); })) {
    facts_.in_force = in_force();
    facts_.row_work = model_->facts().row_work;
    facts_.form = model_->facts().form;
    facts_.memory = turns_.now([&] { return memory_of(torch.type()); });
    facts_.about = about(Json::Object{});
  }
  ~ModelStepper() override { turns_.finish(); }

  void step(const std::shared_ptr<Batch>& batch, Stream& stream,
            std::int64_t number) override {
    turn("taking a step of the model", stream, [&] {
      averages_.use(false);
      if (!std::exchange(checked_, true))
        facts_.about = about(model_->check(*batch));
      const Together steps = together(number);
      at::Tensor loss =
          learn(*batch, {batch->at().epoch, batch->ids(), staging_, stream},
                steps, number);
      if (number + 1 == steps.end) move(steps.first);
      PENSTOCK_ASSERT(loss.scalar_type() == at::kFloat, "a loss is a float32");
      losses_.add(static_cast<const std::byte*>(loss.const_data_ptr()), stream);
    });
  }

  std::vector<double> losses(bool wait) override {
    return in_torch("waiting for a step of the model",
                    [&] { return losses_.take(wait); });
  }

  void validate(const std::shared_ptr<Batch>& batch, Stream& stream) override {
    turn("validating the model", stream, [&] {
      at::NoGradGuard no_graph;
      averages_.use(true);
      model_->look(*batch);
    });
  }

  Validated validated() override {
    return turn_now("waiting for the validation of the model", [&] {
      averages_.use(false);
      return model_->seen();
    });
  }

  void restore(const ModelState& state) override {
    turn_now("restoring the model", [&] {
      check_description(state.json);
      gradients_.begin_anew(has_gradients(state));
      copy_state(state, all_tensors());
    });
  }

 private:
  std::vector<SwitchInForce> in_force() const;
  std::optional<ModelMemory> memory_of(at::DeviceType device);
  Json about(const Json& found) const;

  ModelState state_in(std::vector<std::byte> memory) override {
    return turn_now("saving the model", [&] {
      const bool averages = averages_.use(false);
      ModelState state = state_of(all_tensors(), std::move(memory));
      averages_.use(averages);
      state.json = description();
      return state;
    });
  }

  /// Whether the state is of a group of steps that had not moved the weights
  /// yet. "gradient.counted" alone is not a gradient: it is always saved.
  bool has_gradients(const ModelState& state) const {
    const std::string first = "gradient." + model_->facts().parameters[0].name;
    return std::ranges::find(state.tensors, first, &NamedTensor::name) !=
           state.tensors.end();
  }

  /// Steps [first, end) move the weights together.
  struct Together {
    std::int64_t first = 0, end = 0;
  };
  // Groups begin at multiples of `accumulate`. The last one ends with the
  // schedule, so it may be shorter, and its gradients are divided by the steps
  // it has.
  Together together(std::int64_t number) const {
    const std::int64_t first =
        number / learning_.accumulate * learning_.accumulate;
    return {first, std::max(number + 1, std::min(first + learning_.accumulate,
                                                 schedule_.steps))};
  }

  /// Adds the gradients of a batch to those of the steps before; its loss. One
  /// that throws changes none.
  at::Tensor learn(const Batch& batch, const DrawnFor& rows,
                   const Together& steps, std::int64_t number) {
    const std::vector<at::Tensor> earlier =
        gradients_.set_aside(number == steps.first);
    buffers_.keep();
    try {
      const MeanLoss loss = model_->loss(batch, rows);
      const std::int64_t share = steps.end - steps.first;
      at::Tensor part = counted_.on()
                            ? counted_.weighted(loss.mean, loss.counted)
                        : share == 1 ? loss.mean
                                     : loss.mean / share;
      scale_.scaled(part).backward();
      gradients_.add(earlier);
      if (counted_.on()) counted_.add(number == steps.first, loss.counted);
      return loss.mean;
    } catch (...) {
      gradients_.put_back(earlier);
      buffers_.put_back();
      throw;
    }
  }

  /// At the rate of the first of their steps: as one of all their rows would.
  /// The order matters: gradients are unscaled before they are divided and
  /// clipped, or the bound on their norm would be that of scaled ones. The
  /// scale is updated last, by whether they were finite.
  void move(std::int64_t number) {
    at::Tensor left_out = scale_.unscale(gradients_.all());
    counted_.divide(gradients_.all());
    optimizer_.step(learning_rate(schedule_, number), left_out);
    scale_.update();
    averages_.update();
  }

  void follow_tf32() const {
    if (!on_gpu_) return;
    at::globalContext().setAllowTF32CuBLAS(learning_.tf32);
    at::globalContext().setAllowTF32CuDNN(learning_.tf32);
  }

  template <class Work>
  void turn(const char* doing, Stream& stream, Work work) {
    in_torch(doing, [&] { turns_.on(stream, work); });
  }
  template <class Work>
  auto turn_now(const char* doing, Work work) -> decltype(work()) {
    return in_torch(doing, [&] { return turns_.now(work); });
  }

  std::vector<Parameter> all_tensors() const {
    std::vector<Parameter> all;
    append(all, "model.", model_->facts().parameters);
    append(all, "model.", model_->facts().buffers);
    append(all, "adamw.", optimizer_.state());
    append(all, "gradient.", gradients_.kept());
    append(all, "scale.", scale_.state());
    append(all, "gradient.", counted_.state());
    append(all, "ema.", averages_.state());
    return all;
  }

  Json description() const {
    Json json = model_->facts().description;
    json["threads"] = threads_;
    return json;
  }

  void check_description(const Json& found) const;

  const int threads_;
  const Schedule schedule_;
  SerialStream turns_;
  Staging staging_;
  PendingLosses losses_;
  const Learning learning_;
  const bool on_gpu_;
  const std::unique_ptr<Model> model_;
  AdamW optimizer_;
  Gradients gradients_;
  LossScale scale_;
  CountedSteps counted_;
  Averages averages_;
  Buffers buffers_;
  bool checked_ = false;
};

std::vector<SwitchInForce> ModelStepper::in_force() const {
  const Json asked = learning_settings().shown(learning_);
  std::vector<SwitchInForce> switches;
  auto add = [&](const char* name, Json got, const char* why_not) {
    const Json& wanted = *asked.find(name);
    const bool same = got == wanted;
    switches.push_back({name, wanted, std::move(got), same ? "" : why_not});
  };
  add("precision", *asked.find("precision"), "");
  add("tf32", learning_.tf32 && on_gpu_, "the cpu does not support it");
  add("accumulate", learning_.accumulate, "");
  add("ema", learning_.ema, "");
  const ModelFacts& model = model_->facts();
  if (model.smoothing)
    add("label_smoothing", *model.smoothing,
        "the target is a number, not a class");
  std::ranges::copy(model.in_force, std::back_inserter(switches));
  return switches;
}

// What is held when backward() begins: it frees as it goes.
std::optional<ModelMemory> ModelStepper::memory_of(at::DeviceType device) {
  bool known = true;
  const StepMemory steps = step_memory(device, [&](std::int64_t rows) {
    known = model_->made_up_loss(rows).defined();
  });
  if (!known) return std::nullopt;
  const std::int64_t learned = bytes_of(model_->facts().parameters);
  return ModelMemory{
      .parameters = model_->facts().bytes,
      .gradients = learned,
      .optimizer = 2 * learned + (learning_.ema > 0 ? learned : 0),
      .row_bytes = steps.row_bytes,
      .step_bytes = steps.step_bytes};
}

/// `found`: by the model, in its first batch.
Json ModelStepper::about(const Json& found) const {
  const ModelFacts& model = model_->facts();
  std::int64_t learned = 0;
  for (const Parameter& parameter : model.parameters)
    learned += parameter.value.numel();
  Json json;
  if (model.numbers > 0) {
    json["parameters"] = model.numbers;
    json["bytes"] = model.bytes;
  }
  if (model.row_work.flops > 0) {
    json["tokens_per_row"] = model.row_work.tokens;
    json["flops_per_row"] = model.row_work.flops;
    json["peak_flops"] = model.row_work.peak_flops;
  }
  for (const auto& [name, value] : found.object()) json[name] = value;
  if (model.form.adapter) json["adapter"] = true;
  json["learned"] = learned;
  if (model.numbers == 0) json["parameters"] = learned;
  if (!facts_.memory) return json;
  Json& memory = json["memory"];
  memory["parameters"] = facts_.memory->parameters;
  memory["gradients"] = facts_.memory->gradients;
  memory["optimizer"] = facts_.memory->optimizer;
  memory["row_bytes"] = facts_.memory->row_bytes;
  memory["step_bytes"] = facts_.memory->step_bytes;
  return json;
}

// Threads may differ: then the last bits do, too.
void ModelStepper::check_description(const Json& found) const {
  const Json ours = description();
  for (const auto& [key, expected] : ours.object()) {
    const Json* value = found.is_object() ? found.find(key) : nullptr;
    if (value != nullptr && *value == expected) continue;
    std::string why = "found " +
                      (value == nullptr ? "nothing" : value->dump()) +
                      ", expected " + expected.dump();
    if (key == "threads") {
      log(LogLevel::warning,
          "the checkpoint was written with another number of threads (" + why +
              "): the run continues, but not bit for bit");
      continue;
    }
    throw Error(
        ErrorKind::request,
        {.code = "resume.other_model",
         .what = "cannot continue from the checkpoint",
         .where = "model." + key,
         .why = std::move(why),
         .next = "resume with the job that wrote it, or start a new run"});
  }
}

const NamedTensor* find_tensor(const Batch& batch, std::string_view name) {
  std::span<const NamedTensor> tensors = batch.tensors();
  auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

bool has_tensor(const Batch& batch, const std::string& name) {
  return find_tensor(batch, name) != nullptr;
}

at::Tensor tensor_of(const Batch& batch, const std::string& name) {
  const NamedTensor* found = find_tensor(batch, name);
  PENSTOCK_ASSERT(found != nullptr, "a batch has its fields");
  return borrowed(found->view);
}

// Where batches are padded, or bad samples masked, one more tensor marks them.
at::Tensor weights_of(const Batch& batch) {
  if (const NamedTensor* weight = find_tensor(batch, kWeight))
    return borrowed(weight->view);
  at::Tensor any = borrowed(batch.tensors()[0].view);
  return at::ones({batch.rows()}, any.options().dtype(at::kFloat));
}

std::unique_ptr<Stepper> make_model_stepper(const ModelSpec& spec,
                                            const FittedFields& data,
                                            Device& device, std::int64_t steps,
                                            MakeModel make) {
  return std::make_unique<ModelStepper>(spec, data, device,
                                        torch_device(device), steps, make);
}

}  // namespace penstock
