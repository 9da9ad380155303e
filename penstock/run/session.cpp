#include "penstock/run/session.h"

#include <algorithm>

#include "penstock/advisor/advisor.h"
#include "penstock/run/prepare.h"
#include "penstock/run/rank_facts.h"
#include "penstock/run/state.h"

namespace penstock {
namespace {

constexpr std::size_t kDigits = 16;  // of a SHA-256: enough to tell apart

std::shared_ptr<const Dataset> prepared(const Job& job, Device& device,
                                        StopFlag stop) {
  return prepare_rows(job, device, {.stop = stop});
}

std::string beginning_of(Sha256& digest) {
  return digest.hex().substr(0, kDigits);
}

/// Of the rows, and of what makes tensors of them.
std::string data_digest(const Dataset& rows, const Job& job) {
  Sha256 digest;
  std::string text = rows.fingerprint() + recipes_of(job).dump();
  digest.add(std::as_bytes(std::span(text)));
  return beginning_of(digest);
}

std::string order_digest(const Order& order, const Split& split, Side side) {
  Sha256 digest;
  std::string text = order_json(order, split).dump();
  digest.add(std::as_bytes(std::span(text)));
  if (side == Side::val) digest.add(std::as_bytes(std::span("val", 3)));
  return beginning_of(digest);
}

[[noreturn]] void refuse_state(std::string code, std::string where,
                               std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = std::move(code),
                                   .what = "cannot go on from the state",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

void check_rank(const Rank& rank) {
  if (rank.world >= 1 && rank.rank >= 0 && rank.rank < rank.world) return;
  throw Error(ErrorKind::request,
              {.code = "loader.rank",
               .what = "cannot use rank " + std::to_string(rank.rank) + " of " +
                       std::to_string(rank.world),
               .where = "rank, world",
               .why = "expected 0 <= rank < world",
               .next = "ranks count from 0: rank 0 and 1 of a world of 2"});
}

[[noreturn]] void refuse_closed() {
  throw Error(ErrorKind::request,
              {.code = "loader.closed",
               .what = "cannot use the loader",
               .where = "the loader",
               .why = "it was closed",
               .next = "open it anew, and close it after the last batch"});
}

}  // namespace

Session::Session(const Job& job, const OpenOptions& options)
    : job_(job),
      options_(options),
      numbers_{.started = wall_clock().now()},
      device_((check_rank(options.rank), open_device(job.device))),
      source_((options_.rows ? options_.rows : prepared)(
          job_, *device_, {options_.stop.get(), &closing_})),
      rows_(source_),
      order_(order_of(loader_options(job_, options_.side), *rows_)),
      stream_(device_->make_stream()),
      clock_(device_->clock()) {
  options_.agree = nullptr;  // for the opening alone
  if (!options_.batches) options_.batches = steps_in_all(job_, order_);
  loader_ = std::make_unique<Loader>(rows_, options_at({}), *device_);
}

Session::~Session() { close(); }

LoaderOptions Session::options_at(Position at) const {
  LoaderOptions options = loader_options(job_, options_.side);
  options.rank = options_.rank;
  options.start = at;
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

std::shared_ptr<const Dataset> Session::source() const {
  Lock lock(source_mutex_);
  if (source_ == nullptr) refuse_closed();
  return source_;
}

std::shared_ptr<const TableDataset> Session::dataset() const {
  return std::dynamic_pointer_cast<const TableDataset>(source());
}

const Loader& Session::loader() const {
  check_open();
  return *loader_;
}

void Session::ask() {
  end_step();
  if (options_.timed && !elsewhere_ && !asked_) clock_.ask();
  asked_ = true;
  std::optional<Position> done = std::exchange(taken_, std::nullopt);
  if (teller_ != nullptr && done) teller_->step(*done, std::nullopt);
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
  take(batch->at(), batch->rows());
  {
    Lock lock(stream_mutex_);
    if (in_step_) clock_.before_wait(*stream_);
    batch->wait_on(stream_);
    if (in_step_) clock_.after_wait(*stream_);
  }
  return batch;
}

std::optional<FilledBatch> Session::next_into(std::span<const TensorView> to) {
  check_open();
  ask();
  std::optional<FilledBatch> batch;
  {
    Lock lock(stream_mutex_);
    batch = loader_->next_into(to, *stream_);
  }
  asked_ = false;
  if (!batch) return batch;
  take(batch->at, batch->rows);
  if (in_step_) {
    Lock lock(stream_mutex_);
    clock_.before_wait(*stream_);
    clock_.after_wait(*stream_);
  }
  return batch;
}

const std::vector<BatchTensor>& Session::tensors() {
  check_open();
  return loader_->tensors();
}

void Session::take(Position at, std::int64_t rows) {
  taken_ = at;
  in_step_ = options_.timed && !elsewhere_;
  if (in_step_) {
    clock_.got();
    clock_.group(at.epoch, rows);
  }
  if (numbers_.steps == 0) numbers_.first_step = wall_clock().now();
  ++numbers_.steps;
  numbers_.samples += rows;
  count_epoch(at.epoch, rows);
}

void Session::count_epoch(std::int64_t at, std::int64_t rows) {
  numbers_.epochs[at].samples += rows;
  if (numbers_.epochs.size() <= kEpochsTold) return;
  auto oldest = numbers_.epochs.begin();
  if (oldest->first == at) ++oldest;
  clock_.forget(oldest->first);
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

void Session::wait_on(Batch& batch, Stream& other) {
  Lock lock(stream_mutex_);
  batch.wait_on(other);
}

void Session::wait_on(Batch& batch, void* handle) {
  Lock lock(stream_mutex_);
  batch.wait_on(borrowed(handle));
}

/// One object for a handle as long as it is in use.
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
  stream_->step(static_cast<std::uint64_t>(numbers_.steps - 1));
  clock_.after_step(*stream_);
}

void Session::rest() {
  if (closed()) return;
  ask();
  asked_ = false;
  clock_.pause();
  if (teller_ != nullptr) teller_->rest();
}

void Session::tell_step(const StepParts& step, std::int64_t epoch) {
  clock_.add(step, epoch);
}

void Session::tell_progress(std::function<void(const Progress&)> told,
                            std::int64_t epochs, std::int64_t steps_left) {
  teller_.reset();  // it looks at the listener
  listener_.progress = std::move(told);
  teller_ = std::make_unique<ProgressReporter>(
      listener_, clock_, *device_,
      ProgressReporter::Whole{.epochs = epochs,
                              .steps_per_epoch = steps_per_epoch(),
                              .steps_left = steps_left});
}

Position Session::position() const { return loader().position(); }

void Session::seek(Position at) {
  check_open();
  end_step();
  if (at.step < 0 || at.epoch < 0 || at.step >= steps_per_epoch())
    refuse_state("resume.no_state", "the position",
                 "found epoch " + std::to_string(at.epoch) + ", step " +
                     std::to_string(at.step) + "; an epoch has " +
                     std::to_string(steps_per_epoch()) + " steps",
                 "give a step of an epoch, from 0");
  stages_ = stages();
  wait_order_ += loader_->wait_order();
  loader_.reset();
  try {
    loader_ = std::make_unique<Loader>(rows_, options_at(at), *device_);
  } catch (...) {
    close();
    throw;
  }
}

void Session::map(RowFunction function) {
  check_open();
  rows_ =
      std::make_shared<FunctionDataset>(rows_, std::move(function), *device_);
  seek(position());
}

Json Session::state() const {
  Position at = position();
  Json json;
  json["v"] = 1;
  json["epoch"] = at.epoch;
  json["step"] = at.step;
  json["data"] = data_digest(*rows_, job_);
  json["order"] = order_digest(order_, job_.split, options_.side);
  return json;
}

void Session::go_on(const Json& state) {
  check_open();
  Spec spec(state, "state");
  Position at{.epoch = spec.integer("epoch", {}, 0, INT64_MAX),
              .step = spec.integer("step", {}, 0, INT64_MAX)};
  if (spec.has("fingerprint")) {  // of a run
    SavedState saved{.position = at, .fingerprint = spec.text("fingerprint")};
    if (const Json* order = spec.raw("order")) saved.order = *order;
    if (const Json* fields = spec.raw("fields")) saved.fields = *fields;
    if (options_.side != Side::train)
      refuse_state("resume.other_order", "state",
                   "it is that of a run's training rows",
                   "open the job's side \"train\"");
    check_same_fields(saved, job_);
    check_goes_on(saved, *rows_, order_, job_.split);
    return seek(at);
  }
  spec.integer("v", {}, 1, 1);
  std::string data = spec.text("data"), order = spec.text("order");
  spec.finish();
  std::string ours = data_digest(*rows_, job_);
  if (data != ours)
    refuse_state("resume.other_data", "state.data",
                 "found " + ours + ", the state was saved with " + data +
                     ": rows or fields were added, removed or changed",
                 "start anew, or bring the old rows back");
  if (order != order_digest(order_, job_.split, options_.side))
    refuse_state(
        "resume.other_order", "state.order",
        "the order is another one: " + order_json(order_, job_.split).dump(),
        "go on with the side, split, global batch_size, seed, "
        "shuffle and tail that the state was saved with");
  seek(at);
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
    add(found->blocked_get, earlier.blocked_get);
    add(found->blocked_put, earlier.blocked_put);
  }
  return stages;
}

Json Session::report(bool wait) {
  check_open();
  if (wait) clock_.finish();
  RunNumbers numbers = numbers_;
  Snapshot& snapshot = numbers.snapshot;
  snapshot.parts = clock_.total();
  for (const auto& [epoch, parts] : clock_.by_group())
    numbers.epochs[epoch].parts = parts;
  snapshot.stages = stages();
  snapshot.wait_order = wait_order_ + loader_->wait_order();
  snapshot.virtual_time = job_.device.virtual_time;
  std::shared_ptr<const Dataset> source = this->source();
  snapshot.tiers = tiers_of(source->plan());
  snapshot.limits = read_host_limits();
  snapshot.use = read_host_use();
  return report_json(numbers, job_, source.get(), *device_);
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
  options_.rows = nullptr;
  std::shared_ptr<const Dataset> last;  // let go without the lock
  Lock lock(source_mutex_);
  last.swap(source_);
}

std::unique_ptr<Session> open_loader(const Job& job,
                                     const OpenOptions& options) {
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
    check_named_rows(options.rank, job.source, *loader->rows_);
  return loader;
}

}  // namespace penstock
