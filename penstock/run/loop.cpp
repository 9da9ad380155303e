#include "penstock/run/loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "penstock/run/job_memory.h"
#include "penstock/session/session.h"

// The host runs ahead of the device: a step is queued, its loss and its times
// are known some steps later, and nothing waits for them but the end of an
// epoch and a checkpoint. So there are two lines of things that are yet to be
// known: `log_` has the steps without their loss, `ended_` the epochs without
// their times, each given out in order.
//
// `state` moves on after each step that was queued, and says where to go on.
// What is saved is the state after all losses up to there have been looked at:
// one that is not finite ends the run, and nothing is saved any more. However
// run() ends, it saves first. A validation that was stopped is owed
// (`to_validate`).
//
// One thread. Others set `stop` and `save`, which are looked at between steps.

namespace penstock {
namespace {

/// Of several ranks each looks at its share of them.
std::unique_ptr<Loader> held_out_rows(const Loop::Parts& p) {
  bool any = p.session.rows().rows_on(Side::val) > 0;
  if (!p.stepper.facts().has_model || !any) return nullptr;
  const RankGroup* ranks = p.options.ranks;
  return p.session.open_side(Side::val, validation_options(p.job).tail,
                             p.job.training.validate_rows.value_or(0),
                             ranks != nullptr ? ranks->rank() : Rank{});
}

/// How many epochs there are: those of the job, but for a run that has skipped
/// steps of data, which ends in another one.
std::int64_t epochs_in_all(const Loop::Parts& p, std::int64_t in_all) {
  const std::int64_t each = p.session.steps_per_epoch();
  const Position& at = p.state.position;
  const std::int64_t left = in_all - p.state.steps_taken;
  std::int64_t behind = 0, end = 0;
  const bool beyond = __builtin_mul_overflow(at.epoch, each, &behind) ||
                      __builtin_add_overflow(behind, at.step, &behind) ||
                      __builtin_add_overflow(behind, left, &end);
  if (beyond || behind == p.state.steps_taken || left <= 0)
    return p.job.training.epochs;
  return (end - 1) / each + 1;
}

/// "epoch 2/5: val accuracy 0.93": a line of an epoch has the loss already.
std::string measures_line(std::int64_t at, std::int64_t epochs,
                          const Json& validated) {
  const std::string text = measures_text(validated, "val_loss");
  if (text.empty()) return text;
  return "epoch " + std::to_string(at + 1) + "/" + std::to_string(epochs) +
         ": " + text;
}

constexpr const char* kLookAtRows =
    "lower train.lr, examine the rows of that step ('penstock batch'), or skip "
    "them: --resume RUN --skip STEPS";

RunTrace::Of traced(const Loop::Parts& p) {
  if (p.options.trace) return RunTrace::Of::all;
  return p.job.training.profile ? RunTrace::Of::steps : RunTrace::Of::nothing;
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

const Json& StepLog::waiting() const {
  PENSTOCK_ASSERT(!waiting_.empty(), "each step has one loss");
  return waiting_.front().entry;
}

void StepLog::add_loss(double loss) {
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
      epochs_(epochs_in_all(p_, in_all)),
      log_(p_.folder),
      metrics_(exported(), p_.folder.path()),
      progress_(p_.folder.path(),
                {.epochs = epochs_,
                 .steps_per_epoch = p_.session.steps_per_epoch(),
                 .steps = in_all}),
      trace_(traced(p_), p_.folder.path()),
      texts_(p_.job),
      held_out_(held_out_rows(p_)),
      filling_(p_.session.opened()->facts().later != nullptr),
      writer_(p_.checkpoints) {
  p_.session.report_progress(listener(), epochs_, in_all - p_.state.steps_taken,
                             p_.stepper.facts().row_work);
  p_.session.on_point([this](const TimelineNumbers::Point& point) {
    metrics_.add(p_.state.steps_taken, point, p_.stepper.facts().takes_time);
    progress_.add(point);
  });
}

Loop::~Loop() { p_.session.on_point({}); }

bool Loop::run() {
  try {
    take_steps();
    save();
    finish_saving();
    check_end();
  } catch (...) {
    // Of ranks the last common checkpoint is what is left.
    lost_ |= one_of_many();
    // What was done is not lost; the error of the run is the one to tell.
    logged("writing a checkpoint", [&] { finish_saving(); });
    logged("saving an interrupted run", [&] {
      save();
      finish_saving();
    });
    logged("closing steps.jsonl", [&] { log_.end(); });
    trace_.end({});
    throw;
  }
  trace_.end(p_.options.listener.note);
  return ended() && !p_.state.to_validate;
}

/// All steps were taken, or there is no more patience.
bool Loop::ended() const {
  return p_.state.steps_taken >= in_all_ || out_of_patience(p_.state, p_.job);
}

/// Only a stop may end a run before its last step.
void Loop::check_end() const {
  if (stopped() || ended()) return;
  refuse_early_end("step " + std::to_string(p_.state.steps_taken + 1) + " of " +
                   std::to_string(in_all_));
}

void Loop::take_steps() {
  std::int64_t every = p_.job.training.checkpoint_every_steps.value_or(0);
  if (held_out_ == nullptr) p_.state.to_validate.reset();
  if (p_.state.to_validate && validate(*p_.state.to_validate)) save();
  while (!stopped() && !ended()) {
    std::shared_ptr<Batch> batch = next_batch();
    if (batch == nullptr) break;
    take(batch);
    const Position at = batch->at();
    batch.reset();
    const bool best = to_be_validated(at) && validate(at.epoch);
    const bool ends = at.step + 1 == p_.session.steps_per_epoch() || ended();
    if (ends) end_epoch(at.epoch);
    const bool due = every > 0 ? p_.state.steps_taken % every == 0
                               : ends && p_.stepper.facts().has_model;
    if (best || due) save();  // the best weights, before the next step
    save_if_requested();
  }
  p_.session.clock().finish();
  report_epochs();
  if (!metrics_.any()) return;
  // The time since the last point: all there is of a short run.
  const RunNumbers numbers = p_.session.numbers();
  if (!numbers.timeline.points.empty())
    metrics_.add(p_.state.steps_taken, numbers.timeline.points.back(),
                 p_.stepper.facts().takes_time);
}

/// A batch that does not fit is made again after something was given up.
std::shared_ptr<Batch> Loop::next_batch() {
  for (;;) {
    std::optional<Error> shortage;
    try {
      return asked_batch();
    } catch (const Error& error) {
      const Learning& learning = p_.job.model.learning;
      if (error.kind() != ErrorKind::out_of_memory ||
          learning.oom == Learning::OnShortage::stop)
        throw;
      shortage = error;
    }
    if (!give_up_data(p_.job.loading.options.batch_size, *shortage))
      throw *shortage;
  }
}

/// No batch after the last one, and when a stop ended the reading of it.
std::shared_ptr<Batch> Loop::asked_batch() try {
  const Nanoseconds asked = wall_clock().now();
  std::optional<Batch> batch = p_.session.next();
  if (one_of_many()) p_.options.ranks->add_input(wall_clock().now() - asked);
  return batch ? p_.session.shared(std::move(*batch)) : nullptr;
} catch (const Error& error) {
  if (!is_stop(error) || !stopped()) throw;
  return nullptr;
}

/// A step that ran out of memory has changed nothing. It is repeated after
/// something was given up: outside of the handler, since an exception may hold
/// memory.
void Loop::step(const std::shared_ptr<Batch>& batch) {
  while (const std::optional<Error> shortage = stepped(batch))
    make_room(*batch, *shortage);
}

std::optional<Error> Loop::stepped(const std::shared_ptr<Batch>& batch) try {
  wish();
  p_.stepper.step(batch, p_.session.stream(), p_.state.steps_taken);
  if (one_of_many() && !p_.stepper.facts().has_model)
    p_.options.ranks->vote({});
  heed();
  return std::nullopt;
} catch (const Error& error) {
  if (error.parts().code == kNotFinite) refuse_step(*batch, error);
  if (error.kind() != ErrorKind::out_of_memory) throw;
  return error;
}

/// Gives up the next thing, the cheapest first. Throws where nothing is left.
void Loop::make_room(const Batch& batch, const Error& shortage) {
  if (p_.job.model.learning.oom == Learning::OnShortage::stop) throw shortage;
  if (one_of_many()) return make_room_together(batch, shortage);
  if (give_up_data(batch.rows(), shortage)) return;
  StepMemory* memory = p_.stepper.memory();
  if (memory == nullptr) throw shortage;
  if (!memory->give_way(p_.state.steps_taken, batch.rows()))
    refuse_shortage(batch, shortage);
}

/// Rows and batches on the device, which no step needs there.
bool Loop::give_up_data(std::int64_t rows, const Error& shortage) {
  auto gave = [&](OomAction action, const std::string& what) {
    log(LogLevel::warning,
        "the device is out of memory for a step: " + what +
            ", and the step is repeated: " + shortage.what());
    StepMemory* memory = p_.stepper.memory();
    if (memory == nullptr) return true;
    rows = std::min(memory->micro_batch(), rows);
    memory->add({.step = p_.state.steps_taken,
                 .from = rows,
                 .to = rows,
                 .action = action});
    return true;
  };
  if (const std::size_t freed = free_rows(); freed > 0)
    return gave(
        OomAction::rows_to_host,
        "its cached rows, " + shown_bytes(freed) + ", move to host memory");
  const std::size_t freed = p_.session.drop_look_ahead();
  if (freed == 0) return false;
  held_out_ = nullptr, held_out_ = held_out_rows(p_);
  return gave(OomAction::look_ahead,
              "one batch is kept ahead, which frees " + shown_bytes(freed));
}

/// Moves the rows that are on the device to the host; how many bytes.
std::size_t Loop::free_rows() {
  held_out_.reset();  // it would hold them
  const std::size_t freed = p_.session.release_memory(SIZE_MAX);
  held_out_ = held_out_rows(p_);
  return freed;
}

/// Names the row that does not fit even alone, where it is one.
void Loop::refuse_shortage(const Batch& batch, const Error& shortage) {
  ErrorParts parts = shortage.parts();
  parts.where = "epoch " + std::to_string(batch.at().epoch) + ", step " +
                std::to_string(batch.at().step);
  const std::optional<std::int64_t> alone = p_.stepper.memory()->row_alone();
  const bool known = alone && std::ssize(batch.ids()) == batch.rows();
  if (known) {
    const SampleId sample = batch.ids()[static_cast<std::size_t>(*alone)];
    parts.where += ", row " + std::to_string(*alone) + ", key " +
                   key_of(*p_.session.opened(), sample).dump();
    parts.why = "this row does not fit by itself: " + parts.why;
  }
  const Learning& learning = p_.job.model.learning;
  const std::string needs =
      memory_that_fits(*p_.stepper.memory(), batch.rows(), p_.session.device());
  if (!needs.empty()) parts.why += "; " + needs;
  parts.next =
      "raise device.memory_gib, shorten the longest rows, or use a "
      "smaller model";
  if (learning.oom == Learning::OnShortage::exact && !alone)
    parts.next =
        "set train.oom to \"guard\" if batch normalization may see "
        "fewer rows, or use a smaller loader.batch_size";
  else if (!alone && learning.micro_batch_min > 1)
    parts.next = "lower train.micro_batch_min";
  throw Error(ErrorKind::out_of_memory, std::move(parts));
}

void Loop::take(const std::shared_ptr<Batch>& batch) {
  Session& session = p_.session;
  check_saved(false);
  step(batch);
  session.end_step();
  const RunNumbers& run = session.counted();
  if (run.steps > 1) ++timed_steps_;  // the first only starts the clock
  if (StepMemory* memory = p_.stepper.memory())
    session.counted().account.add(seconds(wall_clock().now() - run.started),
                                  memory->take_peak(),
                                  data_memory(session.device()).bytes);
  p_.state.position = session.position();
  ++p_.state.steps_taken;
  unsaved_ = true;
  become_latest();
  log_.add(batch->at(), batch->rows(), wall_clock().now() - run.started,
           p_.stepper.facts().has_model);
  if (!batch->rejected().empty()) p_.quarantine.add(*batch, *session.opened());
  take_losses(false);
  session.report_step();
  tell_progress(batch->at());
  tell_store();
  trace_.step(run.steps, p_.options.listener.note);
  report_epochs();
}

/// Once something was done that a resumption need not do again.
void Loop::become_latest() {
  if (!std::exchange(latest_, true)) p_.folder.become_latest();
}

void Loop::tell_progress(Position at) {
  progress_.step({.at = at,
                  .taken = p_.state.steps_taken,
                  .takes_time = p_.stepper.facts().takes_time},
                 [this] {
                   RunNumbers numbers = p_.session.numbers(false);
                   if (!p_.stepper.facts().takes_time)
                     numbers.leave_out_compute();
                   return numbers.last_window();
                 });
}

/// Once, where rows are prepared while batches are made.
void Loop::tell_store() {
  if (!filling_) return;
  const auto later = p_.session.opened()->facts().later;
  if (later == nullptr || later->rows() == nullptr) return;
  filling_ = false;
  if (p_.options.listener.note)
    p_.options.listener.note(
        "all rows are prepared: from now on they are read from the store");
}

void Loop::take_losses(bool wait) {
  for (double loss : p_.stepper.losses(wait)) {
    if (!std::isfinite(loss)) refuse_loss(loss);
    loss_sum_ += loss;
    ++losses_;
    p_.session.set_loss(loss);
    log_.add_loss(loss);
  }
}

/// The weights have moved by it: what was saved before is what is left.
void Loop::refuse_loss(double loss) {
  unsaved_ = false, lost_ = true;
  const Json at = log_.waiting();
  log_.add_loss(loss);
  throw not_finite_error(
      "epoch " + at.find("epoch")->dump() + ", step " +
          at.find("step")->dump() + ", the loss",
      std::isnan(loss) ? "the loss is NaN" : "the loss is infinite",
      kLookAtRows);
}

/// The stepper says which layer; the step has changed nothing.
void Loop::refuse_step(const Batch& batch, const Error& error) {
  ErrorParts parts = error.parts();
  parts.where = "epoch " + std::to_string(batch.at().epoch) + ", step " +
                std::to_string(batch.at().step) + ", " + parts.where;
  throw Error(error.kind(), std::move(parts));
}

/// A loss of the held-out rows that is not finite: by the model's numbers, or
/// by the rows.
void Loop::refuse_validation(std::int64_t epoch) {
  if (auto tensor = tensor_without_number(p_.stepper.save())) {
    lost_ = true;
    throw not_finite_error(
        "epoch " + std::to_string(epoch) + ", tensor '" + *tensor + "'",
        "the tensor holds NaN", kLookAtRows);
  }
  throw not_finite_error(
      "epoch " + std::to_string(epoch) + ", the validation loss",
      "the loss is infinite or NaN, while the weights of the model are finite",
      "examine the validation rows, or lower train.lr");
}

void Loop::end_epoch(std::int64_t at) {
  RunNumbers::Epoch& epoch = p_.session.counted().epochs[at];
  take_losses(true);
  if (p_.stepper.facts().has_model)  // its losses have ended anyway
    p_.session.clock().finish();
  if (losses_ > 0) epoch.train_loss = loss_sum_ / static_cast<double>(losses_);
  loss_sum_ = 0, losses_ = 0;
  const Json* loss = epoch.validated.find("val_loss");
  ended_.push_back({.numbers = {.epoch = at,
                                .epochs = epochs_,
                                .train_loss = epoch.train_loss,
                                .val_loss = loss != nullptr && loss->is_number()
                                                ? std::optional(loss->number())
                                                : std::nullopt},
                    .measures = measures_line(at, epochs_, epoch.validated),
                    .steps = std::exchange(timed_steps_, 0)});
  report_epochs();
}

/// After the step that was taken at `at`; after the last one always.
bool Loop::to_be_validated(Position at) const {
  if (held_out_ == nullptr) return false;
  const TrainSection& training = p_.job.training;
  if (p_.state.steps_taken >= in_all_) return true;
  if (training.validate_every_steps)
    return p_.state.steps_taken % *training.validate_every_steps == 0;
  return at.step + 1 == p_.session.steps_per_epoch() &&
         (at.epoch + 1) % training.validate_every_epochs == 0;
}

/// The device may lag behind by some steps; nothing waits for it here.
void Loop::report_epochs() {
  const auto& parts = p_.session.clock().by_group();
  for (; !ended_.empty(); ended_.pop_front()) {
    Ended& epoch = ended_.front();
    auto known = parts.find(epoch.numbers.epoch);
    if (known != parts.end()) epoch.numbers.parts = known->second;
    if (epoch.numbers.parts.steps < epoch.steps) return;
    p_.session.report_epoch(epoch.numbers);
    if (p_.options.listener.note && !epoch.measures.empty())
      p_.options.listener.note(epoch.measures);
    export_epoch(epoch.numbers.epoch);
  }
}

void Loop::export_epoch(std::int64_t epoch) {
  if (metrics_.any()) {
    RunNumbers numbers = p_.session.numbers(false);
    if (!p_.stepper.facts().takes_time) numbers.leave_out_compute();
    if (numbers.epochs.contains(epoch))
      metrics_.add_epoch(p_.state.steps_taken, epoch_json(numbers, epoch));
  }
  for (const std::string& line : timing_lines(p_.session.loader().stages())) {
    log(LogLevel::debug, line);
    if (p_.job.training.profile && p_.options.listener.note)
      p_.options.listener.note(line);
  }
}

/// Stopped in the middle, it leaves the whole epoch to be validated later, and
/// its numbers unknown. Whether the weights are the best so far.
bool Loop::validate(std::int64_t at) {
  take_losses(true);  // one that is not finite is told first
  p_.session.clock().pause();
  RunNumbers& run = p_.session.counted();
  Nanoseconds start = wall_clock().now(), saving = run.checkpoints;
  p_.state.to_validate = at;
  bool best = false;
  if (see_held_out_rows()) {
    Validated found = p_.stepper.validated();
    run.details = std::move(found.details);
    found.metrics = measured_by_first(std::move(found.metrics));
    const Json& measured = run.epochs[at].validated = std::move(found.metrics);
    texts_.add(run.details, at, p_.state.steps_taken);
    const Json* loss = measured.find("val_loss");
    if (loss != nullptr && !loss->is_number()) refuse_validation(at);
    best = is_best(p_.job, measured, at, p_.state);
    note_validation(measured);
    p_.state.to_validate.reset();
    unsaved_ = true;
    become_latest();
  }
  saving = run.checkpoints - saving;  // what was saved on request
  run.validation += wall_clock().now() - start - saving;
  ++run.validations;
  return best;
}

/// A line for each, where there may be several in an epoch.
void Loop::note_validation(const Json& measured) const {
  if (!p_.job.training.validate_every_steps || !p_.options.listener.note)
    return;
  p_.options.listener.note("step " + std::to_string(p_.state.steps_taken) +
                           "/" + std::to_string(in_all_) + ": " +
                           measures_text(measured, ""));
}

/// False when it was stopped before the last batch.
bool Loop::see_held_out_rows() try {
  Stream& stream = p_.session.stream();
  for (std::int64_t i = 0; i < held_out_->steps_per_epoch(); ++i) {
    vote();
    if (stopped()) return false;
    save_if_requested();
    const Nanoseconds asked = wall_clock().now();
    Batch batch = promised(held_out_->next(stream));
    if (one_of_many()) p_.options.ranks->add_input(wall_clock().now() - asked);
    p_.stepper.validate(p_.session.shared(std::move(batch)), stream);
  }
  return true;
} catch (const Error& error) {
  if (!is_stop(error) || !stopped()) throw;
  return false;
}

/// What was not written is to be saved once more, but for a model that holds
/// values that are not numbers.
void Loop::check_saved(bool wait) try {
  wait ? writer_.wait() : writer_.check();
} catch (const Error& error) {
  unsaved_ = true;
  lost_ = error.parts().code == kNotFinite;
  throw;
}

void Loop::save() {
  if (lost_) return log_.flush();
  take_losses(true);
  log_.flush();
  if (!unsaved_) return;
  p_.session.clock().pause();
  RunNumbers& run = p_.session.counted();
  const Nanoseconds start = wall_clock().now();
  if (writer_.busy()) ++run.saved.waited;
  check_saved(true);
  std::optional<ModelState> model;
  if (p_.stepper.facts().has_model) {
    const Nanoseconds began = wall_clock().now();
    model = p_.stepper.save(writer_.spare());
    run.saved.copying += wall_clock().now() - began;
    run.saved.bytes = model->memory.size();
  }
  ++run.saved.times;
  if (writes_for_all(p_.options.ranks))
    writer_.begin(p_.state, std::move(model));
  unsaved_ = false;
  run.checkpoints += wall_clock().now() - start;
}

void Loop::finish_saving() {
  if (writer_.busy()) p_.session.clock().pause();
  RunNumbers& run = p_.session.counted();
  const Nanoseconds start = wall_clock().now();
  check_saved(true);
  run.saved.writing = writer_.writing();
  run.checkpoints += wall_clock().now() - start;
}

}  // namespace penstock
