#include "penstock/session/open_loader.h"

#include <algorithm>

#include "penstock/advisor/advisor.h"
#include "penstock/session/classes.h"
#include "penstock/session/rank_facts.h"
#include "penstock/session/spilled_memory.h"

// A session owns the device, the rows, the loader, one stream and one clock, in
// that order of life. Batches that it hands out may be released on any thread,
// so that all that is queued on the streams is queued under `stream_mutex_`;
// the rows as they were opened are behind `source_mutex_`, since reports ask
// for them while another thread closes. Neither is held while the other is
// taken, or while the loader waits. All else belongs to the consumer's thread.
// The clock's events go around the wait for a batch (take) and after the step
// (end_step), whoever queues the step.
namespace penstock {
namespace {

[[noreturn]] void refuse_closed() {
  throw Error(
      ErrorKind::request,
      {.code = "loader.closed",
       .what = "cannot use the loader",
       .where = "the loader",
       .why = "the loader was closed",
       .next = "open the loader again, and close it after the last batch"});
}

[[noreturn]] void refuse_endless() {
  throw Error(
      ErrorKind::request,
      {.code = "packing.endless",
       .what = "the job would never end",
       .where = "train.max_steps",
       .why = "rows packed as a \"stream\" have no epochs, and the job sets no "
              "number of steps",
       .next = "set the number of steps: \"train\": {\"max_steps\": 10000}"});
}

}  // namespace

Session::Session(const Job& job, const OpenOptions& options)
    : job_(job),
      options_(options),
      numbers_{.started = wall_clock().now(), .before = read_memory_share()},
      device_((check_rank(options.rank),
               options.device ? options.device : open_device(job.device))),
      source_(open_rows(job_, *device_, options_,
                        {options_.stop.get(), &closing_})),
      rows_(source_),
      order_(order_of(loader_options(job_, options_.side), *rows_)),
      stream_(device_->make_stream()),
      clock_(device_->clock()),
      whole_job_(!options.batches) {
  options_.agree = nullptr;  // for the opening alone
  options_.note = nullptr;
  options_.rows = nullptr;
  Position first = first_position();
  const bool endless = options_.side == Side::train && rows_->facts().endless;
  if (!options_.batches && endless && !job_.training.max_steps)
    refuse_endless();
  if (!options_.batches)
    options_.batches =
        std::max<std::int64_t>(0, steps_in_all(job_, order_) - steps_before_);
  loader_ = std::make_unique<Loader>(rows_, options_at(first), *device_);
  if (!options_.timed) return;
  timeline_ = std::make_unique<Timeline>(*device_);
  tuner_ = LiveTuner::of(job_, *rows_, options_at(first), *loader_);
}

Session::~Session() { close(); }

LoaderOptions Session::options_at(Position at) const {
  LoaderOptions options = loader_options(job_, options_.side);
  options.rank = options_.rank;
  options.start = at;
  if (one_ahead_) options.prefetch = std::min(options.prefetch, 1);
  options.batches =
      *options_.batches < 0
          ? -1
          : std::max<std::int64_t>(0, *options_.batches - numbers_.steps);
  return options;
}

void Session::check_open() const {
  if (closed()) refuse_closed();
}

const Dataset& Session::rows() const {
  check_open();
  return *rows_;
}

std::shared_ptr<const Dataset> Session::opened() const {
  Lock lock(source_mutex_);
  if (source_ == nullptr) refuse_closed();
  return source_;
}

std::vector<Json> Session::classes(const std::string& field) const {
  return classes_of(field, *opened());
}

const Loader& Session::loader() const {
  check_open();
  return *loader_;
}

void Session::ask() {
  if (numbers_.asked.count() == 0) numbers_.asked = wall_clock().now();
  const bool ended = in_step_;
  end_step();
  if (options_.timed && !elsewhere_ && !asked_)
    ended ? clock_.ask_at_once() : clock_.ask();
  asked_ = true;
  report_step();
}

void Session::report_step() {
  std::optional<Position> done = std::exchange(taken_, std::nullopt);
  if (!done) return;
  if (timeline_ != nullptr)
    timeline_->step(done->epoch, clock_, numbers_.outside());
  if (reporter_ != nullptr) reporter_->step(*done, loss_);
  if (tuner_ != nullptr && !closed()) tune();
}

void Session::tune() {
  tuner_->step(
      *loader_, [this] { return snapshot(); },
      [this](const std::string& line) {
        log(LogLevel::info, "tuned: " + line);
        if (listener_.note) listener_.note("tuned: " + line);
      });
}

void Session::set_loss(double loss) {
  loss_ = loss;
  if (timeline_ != nullptr) timeline_->loss(loss);
}

void Session::on_point(
    std::function<void(const TimelineNumbers::Point&)> listener) {
  if (timeline_ != nullptr) timeline_->on_point(std::move(listener));
}

bool Session::ready_within(Nanoseconds time) {
  check_open();
  ask();
  return loader_->ready_within(time);
}

std::optional<Batch> Session::next() {
  check_open();
  ask();
  std::optional<Batch> batch = loader_->next();
  asked_ = false;
  if (!batch) return batch;
  take(batch->at(), batch->rows(), std::ssize(batch->rejected()));
  {
    Lock lock(stream_mutex_);
    if (in_step_) clock_.got(*stream_);
    batch->wait_on(stream_);
    if (in_step_) clock_.after_wait(*stream_);
  }
  return batch;
}

std::optional<FilledBatch> Session::next_into(std::span<const TensorView> to) {
  check_open();
  ask();
  std::optional<FilledBatch> batch =
      loader_->next_into(to, *stream_, &stream_mutex_);
  asked_ = false;
  if (!batch) return batch;
  take(batch->at, batch->rows, std::ssize(batch->rejected));
  if (in_step_) {
    Lock lock(stream_mutex_);
    clock_.got(*stream_);
    clock_.after_wait(*stream_);
  }
  return batch;
}

void Session::wait_into() {
  Lock lock(stream_mutex_);
  stream_->synchronize();
}

const std::vector<BatchTensor>& Session::tensors() {
  check_open();
  return loader_->tensors();
}

void Session::take(Position at, std::int64_t rows, std::int64_t rejected) {
  taken_ = at;
  in_step_ = options_.timed && !elsewhere_;
  if (in_step_) clock_.group(at.epoch, rows, at.step);
  if (numbers_.steps == 0) numbers_.first_step = wall_clock().now();
  ++numbers_.steps;
  numbers_.samples += rows;
  numbers_.bad_samples += rejected;
  count_epoch(at.epoch, rows);
}

void Session::count_epoch(std::int64_t at, std::int64_t rows) {
  numbers_.epochs[at].samples += rows;
  if (numbers_.epochs.size() <= options_.epochs_listed) return;
  auto oldest = numbers_.epochs.begin();
  if (oldest->first == at) ++oldest;
  clock_.forget(oldest->first);
  if (timeline_ != nullptr) timeline_->forget(oldest->first);
  numbers_.epochs.erase(oldest);
}

std::optional<Batch> Session::peek() {
  LoaderOptions options = options_at(position());
  options.workers = 0;
  if (options.batches != 0) options.batches = 1;
  Loader once(rows_, options, *device_);
  // Without the lock: a function that makes rows may let go of batches.
  std::optional<Batch> batch = once.next();
  Lock lock(stream_mutex_);
  if (batch) batch->wait_on(stream_);
  return batch;
}

void Session::release(Batch batch) {
  Lock lock(stream_mutex_);
  Batch last = std::move(batch);
}

// The deleter refers to this session, which must outlive the batch. Releasing
// may queue work on a stream, which is why even the last owner, on whatever
// thread, has to come through release().
std::shared_ptr<Batch> Session::shared(Batch batch) {
  return {new Batch(std::move(batch)), [this](Batch* last) {
            release(std::move(*last));
            delete last;
          }};
}

void Session::wait_on(Batch& batch, Stream& other) {
  Lock lock(stream_mutex_);
  batch.wait_on(other);
}

void Session::wait_on(Batch& batch, void* handle) {
  Lock lock(stream_mutex_);
  batch.wait_on(borrowed(handle));
}

/// One object for a handle while it is in use.
std::shared_ptr<Stream> Session::borrowed(void* handle) {
  auto known = borrowed_.find(handle);
  if (known != borrowed_.end())
    if (std::shared_ptr<Stream> stream = known->second.lock()) return stream;
  std::erase_if(borrowed_,
                [](const auto& one) { return one.second.expired(); });
  std::shared_ptr<Stream> stream = device_->borrow_stream(handle);
  borrowed_[handle] = stream;
  return stream;
}

void Session::begin_step() {
  if (!in_step_) return;
  Lock lock(stream_mutex_);
  clock_.before_wait(*stream_);
  clock_.after_wait(*stream_);
}

void Session::end_step() {
  if (!std::exchange(in_step_, false)) return;
  Lock lock(stream_mutex_);
  stream_->step(static_cast<std::uint64_t>(steps_before_ + numbers_.steps - 1));
  clock_.after_step(*stream_);
}

void Session::pause() {
  if (closed()) return;
  ask();
  asked_ = false;
  clock_.pause();
  if (reporter_ != nullptr) reporter_->pause();
  if (tuner_ != nullptr) tuner_->pause();
}

void Session::time_elsewhere(bool elsewhere, const std::string& gpu) {
  if (elsewhere_ && !elsewhere) clock_.pause();  // that time was added already
  elsewhere_ = elsewhere;
  if (timeline_ != nullptr && !gpu.empty())
    timeline_->ask_of(std::make_unique<GpuSensor>(gpu, nvml_of_this_machine()));
}

void Session::add_step(const StepParts& step, std::int64_t epoch) {
  clock_.add(step, epoch);
}

void Session::report_progress(TrainListener listener, std::int64_t epochs,
                              std::int64_t steps_left, const RowWork& row) {
  reporter_.reset();  // it refers to the listener
  listener_ = std::move(listener);
  const std::int64_t of_epoch = rows_->facts().endless && steps_left >= 0
                                    ? position().step + steps_left
                                    : steps_per_epoch();
  reporter_ = std::make_unique<ProgressReporter>(
      listener_, clock_, *device_,
      ProgressReporter::Whole{.epochs = epochs,
                              .steps_per_epoch = of_epoch,
                              .steps_left = steps_left,
                              .row = row});
}

void Session::report_epoch(const EpochNumbers& epoch) {
  report_step();
  if (reporter_ != nullptr) reporter_->epoch(epoch);
}

std::unique_ptr<Loader> Session::open_side(Side side, std::optional<Tail> tail,
                                           std::int64_t most_samples,
                                           const Rank& rank) const {
  check_open();
  LoaderOptions options = loader_options(job_, side);
  if (tail) options.tail = *tail;
  if (one_ahead_) options.prefetch = std::min(options.prefetch, 1);
  options.most_samples = most_samples;
  options.rank = rank;
  return std::make_unique<Loader>(rows_, options, *device_);
}

Position Session::position() const { return loader().position(); }

void Session::map(RowFunction function) {
  check_open();
  maps_.push_back(std::move(function));
  rows_ = std::make_shared<FunctionDataset>(rows_, maps_.back(), *device_);
  seek(position());
}

void Session::end_loader() {
  stages_ = stages();
  wait_order_ += loader_->wait_order();
  loader_.reset();
}

void Session::open_at(Position at) {
  try {
    loader_ = std::make_unique<Loader>(rows_, options_at(at), *device_);
    if (tuner_ != nullptr) tuner_->use(*loader_);
  } catch (...) {
    close();
    throw;
  }
}

void Session::use_source(std::shared_ptr<const Dataset> source) {
  rows_ = source;
  {
    Lock lock(source_mutex_);
    source_.swap(source);
  }
  source.reset();  // the memory of the rows before, without the lock
  for (const RowFunction& function : maps_)
    rows_ = std::make_shared<FunctionDataset>(rows_, function, *device_);
}

// The position is taken before the loader ends, and the new loader begins
// there: rows move to another tier between two batches, and the order stays the
// same.
std::size_t Session::release_memory(std::size_t bytes) {
  check_open();
  const std::size_t before = rows_->plan().device_bytes();
  OffDevice less = opened()->off_device(bytes, *device_);
  if (less.rows == nullptr) return 0;
  const Position at = position();
  end_loader();
  use_source(less.rows);
  try {
    if (less.back) use_source(less.back(*device_));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    log(LogLevel::info,
        std::string("no rows are kept on the device: ") + error.what());
  }
  less = {};
  open_at(at);
  const std::size_t after = rows_->plan().device_bytes();
  return before > after ? before - after : 0;
}

std::size_t Session::drop_look_ahead() {
  check_open();
  LoaderOptions options = options_at(position());
  if (const auto threads = loader_->threads())
    options.prefetch = threads->prefetch;
  if (options.prefetch <= 1) return 0;
  const std::size_t before = ring_bytes(options, rows_->facts()).device;
  one_ahead_ = true;
  const Position at = position();
  end_loader();
  if (tuner_ != nullptr) tuner_->keep_one_ahead();
  open_at(at);
  const std::size_t after = ring_bytes(options_at(at), rows_->facts()).device;
  return before > after ? before - after : 0;
}

void Session::use_stream(void* handle) {
  Lock lock(stream_mutex_);
  if (stream_is_borrowed_ && stream_->handle() == handle) return;
  stream_ = borrowed(handle);
  stream_is_borrowed_ = true;
}

/// Those of the loader, and of the ones before it, which had the same.
std::vector<StageNumbers> Session::stages() const {
  std::vector<StageNumbers> stages = loader_->stages();
  auto add = [](auto& sum, const auto& more) {
    if (more) sum = sum.value_or(Nanoseconds(0)) + *more;
  };
  for (const StageNumbers& earlier : stages_) {
    auto found = std::ranges::find(stages, earlier.name, &StageNumbers::name);
    if (found == stages.end()) {
      stages.insert(stages.end() - 1, earlier);  // before the delivery
      continue;
    }
    found->items += earlier.items;
    found->calls += earlier.calls;
    found->busy_wall += earlier.busy_wall;
    found->busy_cpu += earlier.busy_cpu;
    found->bytes += earlier.bytes;
    found->times += earlier.times;
    found->seen += earlier.seen;
    add(found->blocked_get, earlier.blocked_get);
    add(found->blocked_put, earlier.blocked_put);
  }
  return stages;
}

/// The first samples of a batch that was, as the loader had planned it.
std::vector<SampleId> Session::samples_at(Position at) const {
  constexpr std::size_t kShown = 5;
  Plan plan;
  plan_step(order_, options_.rank, at, plan);
  std::vector<SampleId> ids;
  for (const SampleRange& range : plan.ranges) ids.push_back(range.sample);
  if (rows_->facts().repeats && plan.occurrences.empty())
    plan.occurrences = ids;
  rows_->select(options_.side, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) plan.ranges[i].sample = ids[i];
  if (const auto& bins = rows_->facts().bins) bins->expand(plan);
  std::vector<SampleId> first;
  for (const SampleRange& range : plan.ranges)
    if (range.sample >= 0 && first.size() < kShown)
      first.push_back(range.sample);
  return first;
}

std::vector<WorstStep> Session::worst_steps() {
  std::vector<WorstStep> worst;
  for (const SlowStep& slow : clock_.slowest()) {
    WorstStep step{.at = {.epoch = slow.group, .step = slow.number},
                   .parts = slow.parts};
    if (slow.number >= 0) step.samples = samples_at(step.at);
    worst.push_back(std::move(step));
  }
  return worst;
}

HostUse Session::use_so_far() {
  HostUse use = read_host_use();
  use.queued_seconds = processor_queue_seconds();
  return use;
}

/// All numbers of the loop and its loaders up to now.
Snapshot Session::snapshot() {
  Snapshot snapshot;
  snapshot.parts = clock_.total();
  snapshot.samples = numbers_.samples;
  snapshot.stages = stages();
  snapshot.wait_order = wait_order_ + loader_->wait_order();
  snapshot.virtual_time = job_.device.virtual_time;
  std::shared_ptr<const Dataset> source = this->opened();
  snapshot.tiers = tiers_of(source->plan());
  snapshot.cheaper = cheaper(job_.fields);
  if (timeline_ != nullptr) snapshot.gpu_busy = timeline_->gpu_busy();
  snapshot.batch_size = order_.batch_size;
  if (std::optional<LoaderThreads> threads = loader_->threads())
    snapshot.prefetch = threads->prefetch;
  snapshot.limits = read_host_limits();
  snapshot.loader_cpus = job_.loading.cpus.value_or(0);
  snapshot.use = use_between(used_before_, use_so_far());
  return snapshot;
}

RunNumbers Session::numbers(bool wait) {
  check_open();
  if (wait) clock_.finish();
  RunNumbers numbers = numbers_;
  numbers.read = wall_clock().now();
  numbers.snapshot = snapshot();
  for (const auto& [epoch, parts] : clock_.by_group())
    numbers.epochs[epoch].parts = parts;
  if (timeline_ != nullptr)
    numbers.timeline = timeline_->numbers(clock_, numbers_.outside());
  numbers.spilled =
      spilled_memory(numbers.timeline, read_device_use(*device_).total);
  if (driver_moves_memory()) numbers.snapshot.spilled = numbers.spilled;
  numbers.worst_steps = worst_steps();
  if (tuner_ == nullptr) return numbers;
  numbers.tuning.emplace(
      RunNumbers::Tuning{.decisions = tuner_->tuner().decisions(),
                         .rests = tuner_->tuner().rests(),
                         .settled = tuner_->settled(numbers.snapshot)});
  return numbers;
}

Json Session::rank_facts() const {
  check_open();
  return facts_of(job_, options_.side, options_.rank, *options_.batches, order_,
                  *rows_);
}

void Session::close() {
  closing_ = true;
  loader_.reset();
  rows_.reset();
  maps_.clear();
  std::shared_ptr<const Dataset> last;  // let go without the lock
  Lock lock(source_mutex_);
  last.swap(source_);
}

std::unique_ptr<Session> open_loader(const Job& job,
                                     const OpenOptions& options) {
  if (job.loading.find_batch_size)
    throw Error(
        ErrorKind::request,
        {.code = "loader.batch_auto",
         .what = "cannot open the job",
         .where = "loader.batch_size",
         .why = "the batch size is \"auto\", which 'penstock train' finds by "
                "trials of the model",
         .next = "write the number that 'penstock bench JOB "
                 "--batch-size auto' shows"});
  std::unique_ptr<Session> loader;
  try {
    loader.reset(new Session(job, options));
  } catch (...) {
    bool stopped = options.stop && *options.stop;  // then it does not wait
    if (options.agree && !stopped)
      report_failure(options.agree, options.rank, std::current_exception());
    throw;
  }
  if (options.agree)
    compare_ranks(options.agree, options.rank, loader->rank_facts());
  else if (!options.rows && !options.agrees_later)
    check_named_rows(options.rank, job, *loader->rows_);
  if (!options.batches && options.side == Side::train && options.rank.rank == 0)
    tell_unknown_class(job, *loader->rows_, options.note);
  return loader;
}

}  // namespace penstock
