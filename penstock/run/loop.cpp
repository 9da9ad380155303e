#include "penstock/run/loop.h"

#include <utility>

namespace penstock {
namespace {

LoaderOptions steps_left(const Loop::Parts& p, std::int64_t in_all) {
  LoaderOptions options = loader_options(p.job, Side::train);
  options.start = p.state.position;
  options.batches = std::max<std::int64_t>(0, in_all - p.state.steps_taken);
  return options;
}

std::unique_ptr<Loader> held_out_rows(const Loop::Parts& p) {
  if (!p.stepper.has_model() || p.data->side(Side::val).size() == 0)
    return nullptr;
  return std::make_unique<Loader>(p.data, loader_options(p.job, Side::val),
                                  p.device);
}

/// For where nothing more can be done about an error.
template <class Work>
void logged(const char* doing, Work work) {
  try {
    work();
  } catch (...) {
    log_exception(LogLevel::warning, doing);
  }
}

}  // namespace

void StepLog::add(Position at, std::int64_t rows, Nanoseconds since_start,
                  bool loss_follows) {
  Line line{.at = since_start};
  line.entry["epoch"] = at.epoch;
  line.entry["step"] = at.step;
  line.entry["rows"] = rows;
  line.entry["seconds"] = seconds(since_start);
  if (!loss_follows) return write(line);
  waiting_.push_back(std::move(line));
}

void StepLog::tell(double loss) {
  PENSTOCK_ASSERT(!waiting_.empty(), "each step has one loss");
  waiting_.front().entry["loss"] = loss;
  write(waiting_.front());
  waiting_.pop_front();
}

void StepLog::write(const Line& line) {
  lines_ += (lines_.empty() ? "" : "\n") + line.entry.dump();
  if (line.at - written_ < std::chrono::seconds(1)) return;
  written_ = line.at;
  flush();
}

void StepLog::end() {
  if (waiting_.empty()) return;
  for (; !waiting_.empty(); waiting_.pop_front()) write(waiting_.front());
  flush();
}

void StepLog::flush() {
  folder_.append("steps.jsonl", lines_);
  lines_.clear();
}

Loop::Loop(const Parts& parts, std::int64_t in_all)
    : p_(parts),
      in_all_(in_all),
      stream_(p_.device.make_stream()),
      clock_(p_.device.clock()),
      log_(p_.folder),
      loader_(p_.data, steps_left(p_, in_all), p_.device),
      held_out_(held_out_rows(p_)),
      teller_(p_.options.listener, clock_, p_.device,
              {.epochs = p_.job.training.epochs,
               .steps_per_epoch = loader_.steps_per_epoch(),
               .steps_left = in_all - p_.state.steps_taken}) {}

bool Loop::stopped() const {
  return p_.options.stop != nullptr && p_.options.stop->load();
}

bool Loop::run() {
  try {
    take_steps();
    save();
    check_end();
  } catch (...) {
    // What was done is not lost; the error of the run is the one to tell.
    logged("saving an interrupted run", [&] { save(); });
    logged("ending steps.jsonl", [&] { log_.end(); });
    throw;
  }
  return p_.state.steps_taken >= in_all_ && !p_.state.to_validate;
}

/// Only a stop may end a run before its last step.
void Loop::check_end() const {
  if (stopped() || p_.state.steps_taken >= in_all_) return;
  refuse_early_end("step " + std::to_string(p_.state.steps_taken + 1) + " of " +
                   std::to_string(in_all_));
}

void Loop::take_steps() {
  std::int64_t every = p_.job.training.checkpoint_every_steps.value_or(0);
  if (held_out_ == nullptr) p_.state.to_validate.reset();
  if (p_.state.to_validate) validate(*p_.state.to_validate);
  while (!stopped()) {
    std::optional<Batch> batch = next_batch();
    if (!batch) break;
    take(*batch);
    Position at = batch->at();
    batch.reset();
    bool epoch_ends = at.step + 1 == loader_.steps_per_epoch();
    if (epoch_ends) end_epoch(at.epoch);
    bool due = every > 0 ? p_.state.steps_taken % every == 0
                         : epoch_ends && p_.stepper.has_model();
    if (due) save();
    save_if_requested();
  }
  clock_.finish();
  tell_epochs();
}

/// No batch after the last one, and when a stop ended the reading of it.
std::optional<Batch> Loop::next_batch() try {
  clock_.ask();
  std::optional<Batch> batch = loader_.next();
  clock_.got();
  return batch;
} catch (const Error& error) {
  if (!is_stop(error) || !stopped()) throw;
  return std::nullopt;
}

void Loop::take(Batch& batch) {
  clock_.group(batch.at().epoch, batch.rows());
  clock_.before_wait(*stream_);
  batch.wait_on(*stream_);
  clock_.after_wait(*stream_);
  p_.stepper.step(batch, *stream_, p_.state.steps_taken);
  clock_.after_step(*stream_);
  RunNumbers& run = p_.run;
  if (run.steps == 0) {  // it only starts the clock
    run.first_step = wall_clock().now();
  } else {
    ++timed_steps_;
  }
  ++run.steps;
  run.samples += batch.rows();
  run.epochs[batch.at().epoch].samples += batch.rows();
  p_.state.position = loader_.position();
  ++p_.state.steps_taken;
  unsaved_ = true;
  log_.add(batch.at(), batch.rows(), wall_clock().now() - run.started,
           p_.stepper.has_model());
  take_losses(false);
  teller_.step(batch.at(), last_loss_);
  tell_epochs();
}

void Loop::take_losses(bool wait) {
  for (double loss : p_.stepper.losses(wait)) {
    loss_sum_ += loss;
    ++losses_;
    last_loss_ = loss;
    log_.tell(loss);
  }
}

void Loop::end_epoch(std::int64_t at) {
  RunNumbers::Epoch& epoch = p_.run.epochs[at];
  take_losses(true);
  if (p_.stepper.has_model()) clock_.finish();  // its losses have ended anyway
  if (losses_ > 0) epoch.train_loss = loss_sum_ / static_cast<double>(losses_);
  loss_sum_ = 0, losses_ = 0;
  if (held_out_ != nullptr) validate(at);
  const Json* loss = epoch.validated.find("val_loss");
  ended_.push_back({.numbers = {.epoch = at,
                                .epochs = p_.job.training.epochs,
                                .train_loss = epoch.train_loss,
                                .val_loss = loss != nullptr && loss->is_number()
                                                ? std::optional(loss->number())
                                                : std::nullopt},
                    .steps = std::exchange(timed_steps_, 0)});
  tell_epochs();
}

/// The device may lag behind by some steps; nothing waits for it here.
void Loop::tell_epochs() {
  for (; !ended_.empty(); ended_.pop_front()) {
    Ended& epoch = ended_.front();
    auto known = clock_.by_group().find(epoch.numbers.epoch);
    if (known != clock_.by_group().end()) epoch.numbers.parts = known->second;
    if (epoch.numbers.parts.steps < epoch.steps) return;
    teller_.epoch(epoch.numbers);
  }
}

/// Stopped in the middle, it leaves the whole epoch to be validated later, and
/// its numbers unknown.
void Loop::validate(std::int64_t at) {
  clock_.pause();
  Nanoseconds start = wall_clock().now(), saving = p_.run.checkpoints;
  p_.state.to_validate = at;
  if (see_held_out_rows()) {
    p_.run.epochs[at].validated = p_.stepper.validated();
    p_.state.to_validate.reset();
    unsaved_ = true;
  }
  saving = p_.run.checkpoints - saving;  // what was saved on request
  p_.run.validation += wall_clock().now() - start - saving;
}

/// False when it was stopped before the last batch.
bool Loop::see_held_out_rows() try {
  for (std::int64_t i = 0; i < held_out_->steps_per_epoch(); ++i) {
    if (stopped()) return false;
    save_if_requested();
    Batch batch = promised(held_out_->next(*stream_));
    p_.stepper.validate(batch, *stream_);
  }
  return true;
} catch (const Error& error) {
  if (!is_stop(error) || !stopped()) throw;
  return false;
}

void Loop::save_if_requested() {
  std::atomic<bool>* requested = p_.options.save;
  if (requested == nullptr || !requested->exchange(false)) return;
  save();
  if (p_.options.listener.note)
    p_.options.listener.note("saved on request after step " +
                             std::to_string(p_.state.steps_taken) + " in " +
                             p_.folder.path().string() + ", the run goes on");
}

void Loop::save() {
  take_losses(true);
  log_.flush();
  if (!unsaved_) return;
  clock_.pause();
  Nanoseconds start = wall_clock().now();
  std::optional<ModelState> model;
  if (p_.stepper.has_model()) model = p_.stepper.save();
  p_.checkpoints.save(p_.state, model ? &*model : nullptr);
  unsaved_ = false;
  p_.run.checkpoints += wall_clock().now() - start;
}

}  // namespace penstock
