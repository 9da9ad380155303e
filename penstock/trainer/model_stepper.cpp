#include "penstock/trainer/model_stepper.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "penstock/base/tensor_limit.h"
#include "penstock/trainer/adamw.h"
#include "penstock/trainer/averages.h"
#include "penstock/trainer/backward_queue.h"
#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/buffers.h"
#include "penstock/trainer/gradients.h"
#include "penstock/trainer/graphs/graph_maker.h"
#include "penstock/trainer/graphs/step_graphs.h"
#include "penstock/trainer/made_up_rows.h"
#include "penstock/trainer/memory_use.h"
#include "penstock/trainer/model_memory.h"
#include "penstock/trainer/parts_of_batch.h"
#include "penstock/trainer/pending_losses.h"
#include "penstock/trainer/ranks/rank_share.h"
#include "penstock/trainer/serial_stream.h"
#include "penstock/trainer/state.h"
#include "penstock/trainer/stepper_facts.h"
#include "penstock/trainer/torch_error.h"
#include "penstock/trainer/torch_memory.h"

// A step, from the batch to the new weights. The batch's tensors are borrowed
// where they lie -> the model's loss of them -> backward() leaves the gradients
// -> AdamW clips them and moves the weights, at the rate that the schedule has
// for the step's number -> the loss is copied to the host behind all that. It
// is queued on the batch's stream; only who asks for a number waits.
//
// A step is a transaction: what it throws, it has not done. All that allocates
// comes before the weights move. Of a batch in micro-batches the sums of losses
// and of what counts are added up, and divided once.
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

at::Tensor sum_of(const at::Tensor& sum, const at::Tensor& more) {
  return sum.defined() ? sum + more : more;
}

/// What records the passes of a model; no more than a reason where a run does
/// not want that, or cannot have it.
GraphMaker graphs_of(const Learning& learning, const ModelFacts& model,
                     at::Device torch) {
  if (learning.graphs == Learning::Graphs::off) return {.why = "not asked for"};
  GraphMaker maker = graph_maker(torch);
  if (maker.make != nullptr && !model.no_graphs.empty())
    maker = {.why = model.no_graphs};
  return maker;
}

class ModelStepper final : public Stepper {
 public:
  ModelStepper(const ModelSpec& spec, const FittedFields& data, Device& device,
               at::Device torch, std::int64_t steps, MakeModel make)
      : Stepper({.has_model = true}),
        threads_(threads_of(spec)),
        torch_(torch),
        schedule_(schedule_of(spec.learning, steps)),
        turns_(device, torch),
        staging_(device, 2 * kStagedSteps),
        losses_(device),
        learning_(spec.learning),
        queue_(turns_.now([&] { return BackwardQueue(torch); })),
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
        buffers_(turns_.now([&] { return Buffers(model_->facts().buffers); })),
        made_up_(data, torch),
        trials_(device.make_stream()),
        graph_maker_(graphs_of(learning_, model_->facts(), torch)),
        graphs_(graph_maker_.make, device, torch, gradients_, queue_),
        of_steps_(*model_, optimizer_, learning_, graphs_, torch,
                  [this](std::int64_t rows) { return tried(rows); }) {
    const ModelFacts& model = model_->facts();
    facts_.in_force =
        switches_in_force(learning_, model, torch_.is_cuda(), graph_maker_.why);
    facts_.row_work = model.row_work;
    facts_.form = model.form;
    facts_.about = about_model(model, Json::Object{});
    memory_ = &of_steps_;
  }
  ~ModelStepper() override { turns_.finish(); }

  void check_limit() const { of_steps_.check_limit(); }

  void step(const std::shared_ptr<Batch>& batch, Stream& stream,
            std::int64_t number) override {
    number_ = number;
    turn("taking a step of the model", stream, [&] {
      averages_.use(false);
      const BatchRows rows(*batch);
      if (!checked_ && rows.rows() > 0) {
        facts_.about = about_model(model_->facts(), model_->check(rows));
        checked_ = true;
      }
      const DrawnFor drawn{batch->at().epoch, batch->ids(), staging_, stream};
      const at::Tensor loss =
          spare_graphs("taking a step of the model", stream,
                       [&] { return taken(rows, drawn, number); });
      tell_graphs();
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
      in_parts(BatchRows(*batch), of_steps_.validation_rows(),
               [&](const BatchRows& rows) {
                 spare_graphs("validating the model", stream,
                              [&] { return model_->look(rows); });
               },
               learning_.oom == Learning::OnShortage::stop
                   ? Halved()
                   : [this](std::int64_t from, std::int64_t to) {
                       of_steps_.add({.step = number_,
                                      .from = from,
                                      .to = to,
                                      .action = OomAction::validation_rows});
                     });
    });
  }

  Validated validated() override {
    return turn_now("waiting for the validation of the model", [&] {
      Json texts = model_->texts();  // with the weights that were validated
      averages_.use(false);
      Validated seen = model_->seen(ranks_ ? &*ranks_ : nullptr);
      if (!texts.is_null()) seen.details["texts"] = std::move(texts);
      if (ranks_) ranks_->merge(seen.details, model_->facts().texts);
      return seen;
    });
  }

  void restore(const ModelState& state) override {
    turn_now("restoring the model", [&] {
      check_description(description(), state.json);
      of_steps_.restore(state.json);
      gradients_.begin_anew(has_gradients(state));
      copy_state(state, all_tensors());
    });
  }

  void join(RankGroup* ranks) override {
    ranks_.reset();
    if (ranks == nullptr) return;
    turn_now("joining the other ranks", [&] {
      ranks_.emplace(*ranks);
      ranks_->copy_from_first(all_tensors());
      keep_gradients_of_first();
    });
    if (!graphs_.on()) return;
    graphs_.end("not supported with several ranks");
    tell_graphs();
  }

 private:
  ModelState state_in(std::vector<std::byte> memory) override {
    return turn_now("saving the model", [&] {
      if (ranks_) {
        bring_together();
        if (!ranks_->first()) return ModelState{.memory = std::move(memory)};
      }
      const bool averages = averages_.use(false);
      ModelState state = state_of(all_tensors(), std::move(memory));
      averages_.use(averages);
      state.json = description();
      of_steps_.save(state.json);
      return state;
    });
  }

  /// The gradients of a group of steps that have not moved the weights yet are
  /// in parts: each rank has those of its rows. They become the first one's.
  void bring_together() {
    const std::vector<Parameter> kept = gradients_.kept();
    if (!kept.empty()) ranks_->sum(values_of(kept));
    keep_gradients_of_first();
    ranks_->check_same(model_->facts().parameters);
  }
  void keep_gradients_of_first() {
    const std::vector<Parameter> kept = gradients_.kept();
    if (!kept.empty() && !ranks_->first()) at::_foreach_zero_(values_of(kept));
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

  /// Takes a step; its loss. One that throws changes nothing. Of one of several
  /// ranks, only what all vote on may run out of memory: what comes after are
  /// buckets and single numbers.
  at::Tensor taken(const BatchRows& batch, const DrawnFor& rows,
                   std::int64_t number) {
    limit_ = tensor_limit().load();
    const TensorLimit outside(ranks_ ? SIZE_MAX : limit_);
    const Together steps = together(number);
    const bool first = number == steps.first;
    counted_.keep();
    buffers_.keep();
    const std::vector<at::Tensor> earlier = gradients_.set_aside(first);
    try {
      const std::int64_t share = steps.end - steps.first;
      const MeanLoss loss = ranks_ ? learned_together(batch, rows, share)
                                   : learned(batch, rows, share);
      gradients_.add(earlier);
      counted_.add(first, loss.counted);
      if (number + 1 == steps.end) move(steps.first);
      return loss.mean;
    } catch (...) {
      undo(earlier);
      throw;
    }
  }

  void put_back(const std::vector<at::Tensor>& earlier) {
    gradients_.put_back(earlier);
    buffers_.put_back();
    counted_.put_back();
  }
  /// After one that threw.
  void undo(const std::vector<at::Tensor>& earlier) {
    put_back(earlier);
    queue_.empty();
  }

  /// Leaves the gradients of a batch, of which `share` move the weights
  /// together; its loss.
  MeanLoss learned(const BatchRows& batch, const DrawnFor& rows,
                   std::int64_t share) {
    if (of_steps_.micro_batch() < batch.rows())
      return learned_in_parts(batch, rows, share);
    of_steps_.work_on(0, batch.rows());
    return passed(batch, rows, {.share = share}, /*keep=*/share > 1);
  }

  /// A pass forward and backward, by its graph where it has one: its loss, of a
  /// part of a batch the sum. See StepGraphs::take() for `keep`.
  MeanLoss passed(const BatchRows& batch, const DrawnFor& rows,
                  const PassWeight& weight, bool keep) {
    if (!graphs_.on() || trying_) return passed_here(batch, rows, weight);
    return graphs_.take(
        batch, rows, weight, keep,
        [this, weight](const BatchRows& of, const DrawnFor& drawn) {
          return passed_here(of, drawn, weight);
        });
  }
  MeanLoss passed_here(const BatchRows& batch, const DrawnFor& rows,
                       const PassWeight& weight) {
    const MeanLoss loss = model_->loss(batch, rows);
    if (weight.batch_rows > 0) {
      const at::Tensor sum = loss.mean * loss.counted;
      scale_.scaled(counted_.on() ? sum : sum / weight.batch_rows).backward();
      return {sum.detach(), loss.counted};
    }
    const at::Tensor part = counted_.on()
                                ? counted_.weighted(loss.mean, loss.counted)
                            : weight.share == 1 ? loss.mean
                                                : loss.mean / weight.share;
    scale_.scaled(part).backward();
    return {loss.mean.detach(), loss.counted};
  }

  // A part leaves the gradient of its sum over the rows of the batch, which
  // suits the range of float16 as a mean does. What all count divides once.
  MeanLoss learned_in_parts(const BatchRows& batch, const DrawnFor& rows,
                            std::int64_t share) {
    const std::int64_t all = batch.rows();
    MeanLoss sums;
    const std::int64_t at_once = of_steps_.micro_batch();
    for (std::int64_t begin = 0; begin < all; begin += at_once) {
      const std::int64_t end = std::min(all, begin + at_once);
      of_steps_.work_on(begin, end);
      const BatchRows some = batch.slice(begin, end);
      const MeanLoss loss =
          passed(some, {rows.epoch, some.ids(), rows.staging, rows.stream},
                 {.batch_rows = all}, /*keep=*/true);
      sums = {sum_of(sums.mean, loss.mean), sum_of(sums.counted, loss.counted)};
    }
    of_steps_.work_on(0, all);
    const at::NoGradGuard no_graph;
    const at::Tensor counted = sums.counted.clamp_min(kLeastCount);
    if (!counted_.on())
      at::_foreach_div_(
          gradients_.all(),
          counted * (static_cast<double>(share) / static_cast<double>(all)));
    return {sums.mean / counted, sums.counted};
  }

  /// The same for one of several ranks, whose batch is its share of the rows.
  /// Nothing is exchanged until all know that all have their gradients. Then
  /// each has a part of those of all rows, to be added up before the weights
  /// move: of a model that counts, those of a sum.
  MeanLoss learned_together(const BatchRows& batch, const DrawnFor& rows,
                            std::int64_t share) {
    RankGroup::Share mine;
    try {
      in_torch("taking a step of the model", [&] {
        const TensorLimit inside(limit_);
        if (batch.rows() > 0) {
          const MeanLoss loss = learned(batch, rows, share);
          mine.counted = loss.counted.item<double>();
          if (mine.counted > 0)
            mine.loss = loss.mean.item<double>() * mine.counted;
        }
        gradients_.complete();
      });
    } catch (const Error& error) {
      mine.no_memory = error.kind() == ErrorKind::out_of_memory;
      if (!mine.no_memory) throw;
    }
    const Vote& vote = ranks_->vote(mine);
    const double of_all = std::max(vote.counted, kLeastCount);
    const at::NoGradGuard no_graph;
    if (!counted_.on())
      at::_foreach_mul_(gradients_.all(), mine.counted / of_all);
    ranks_->copy_from_first(model_->facts().buffers);
    const at::TensorOptions options(torch_);
    return {at::full({}, vote.loss / of_all, options.dtype(at::kFloat)),
            at::full({}, vote.counted, options.dtype(at::kFloat))};
  }

  /// At the rate of the first of their steps: as one of all their rows would.
  /// The order matters: gradients are unscaled before they are divided and
  /// clipped, or the bound on their norm would be that of scaled ones. The
  /// scale is updated last, by whether they were finite.
  void move(std::int64_t number) {
    if (ranks_) ranks_->sum(gradients_.all());
    at::Tensor left_out = scale_.unscale(gradients_.all());
    counted_.divide(gradients_.all());
    optimizer_.step(learning_rate(schedule_, number), left_out);
    scale_.update();
    averages_.update();
  }

  /// Does `work`. Where memory is short, and graphs hold some, it is done again
  /// without them.
  template <class Work>
  auto spare_graphs(const char* doing, Stream& stream, Work work)
      -> decltype(work()) {
    if (graphs_.graphs() == 0) return work();
    try {
      return in_torch(doing, work);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory || graphs_.graphs() == 0)
        throw;
      graphs_.give_up(
          "memory ran out while they held " +
              shown_bytes(static_cast<std::size_t>(graphs_.bytes())),
          stream);
    }
    return work();
  }
  /// What has become of the graphs, for the report.
  void tell_graphs() {
    if (graph_maker_.make == nullptr) return;
    facts_.about["graphs"] = graphs_.graphs();
    if (graphs_.ended().empty()) return;
    auto told =
        std::ranges::find(facts_.in_force, "graphs", &SwitchInForce::name);
    told->got = "off", told->why = graphs_.ended();
  }

  void follow_tf32() const {
    if (!torch_.is_cuda()) return;
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

  std::int64_t tried(std::int64_t rows);
  std::int64_t peak_of_trial(std::int64_t rows);

  const int threads_;
  const at::Device torch_;
  const Schedule schedule_;
  SerialStream turns_;
  Staging staging_;
  PendingLosses losses_;
  const Learning learning_;
  const BackwardQueue queue_;
  const std::unique_ptr<Model> model_;
  AdamW optimizer_;
  Gradients gradients_;
  LossScale scale_;
  CountedSteps counted_;
  Averages averages_;
  Buffers buffers_;
  MadeUpRows made_up_;
  const std::unique_ptr<Stream> trials_;
  const GraphMaker graph_maker_;
  StepGraphs graphs_;
  bool trying_ = false;  // made-up rows, which shall leave no trace
  std::optional<RankShare> ranks_;
  bool checked_ = false;
  std::int64_t number_ = 0;  // of the last step
  std::size_t limit_ = SIZE_MAX;
  ModelMemory of_steps_;
};

std::int64_t ModelStepper::tried(std::int64_t rows) {
  return in_torch("trying a step of the model", [&] {
    const std::int64_t most =
        turns_.on(*trials_, [&] { return peak_of_trial(rows); });
    trials_->synchronize();
    return most;
  });
}

// The optimiser makes nothing that lasts and little that does not: the peak is
// in forward and backward.
std::int64_t ModelStepper::peak_of_trial(std::int64_t rows) {
  const BatchRows made = made_up_.rows(rows);
  const MemoryByOwner fixed = of_steps_.fixed();
  const std::int64_t before = torch_.is_cpu()
                                  ? host_tensor_bytes() - made_up_.bytes()
                                  : fixed.total() - fixed.gradients;
  const std::vector<at::Tensor> earlier = gradients_.set_aside(false);
  const bool averages = averages_.use(false);
  buffers_.keep(), counted_.keep();
  trying_ = true;
  auto restore = [&] {
    trying_ = false;
    put_back(earlier);
    averages_.use(averages);
    made_up_.clear();
    begin_tensor_peak(torch_);
  };
  try {
    const std::int64_t most = most_held(torch_.type(), [&] {
      learned(made, {0, made.ids(), staging_, *trials_}, 1);
    });
    restore();
    return before + most + fixed.gradients -
           bytes_of(model_->facts().parameters);
  } catch (...) {
    restore();
    queue_.empty();
    throw;
  }
}

}  // namespace

std::unique_ptr<Stepper> make_model_stepper(const ModelSpec& spec,
                                            const FittedFields& data,
                                            Device& device, std::int64_t steps,
                                            MakeModel make) {
  const at::Device torch = torch_device(device);
  limit_gpu_tensors(device, torch);
  std::unique_ptr<ModelStepper> stepper;
  {
    // What the model takes is known once it is there: an error can tell it.
    const TensorLimit none(SIZE_MAX);
    stepper =
        std::make_unique<ModelStepper>(spec, data, device, torch, steps, make);
  }
  stepper->check_limit();
  return stepper;
}

}  // namespace penstock
