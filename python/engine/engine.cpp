#include "python/engine/engine.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "penstock/report/report.h"
#include "python/engine/gil.h"
#include "python/engine/messages.h"

namespace penstock::python {
namespace {

// How long a wait lasts at most: for a batch, before signals are looked for;
// for a loader that is released, before it ends by itself.
constexpr std::chrono::milliseconds kTurn(50);

/// The stream that torch queues work on, where torch is used at all.
std::optional<void*> torch_stream(int device) {
  PythonCallScope call;
  nb::object modules = nb::module_::import_("sys").attr("modules");
  nb::object torch = modules.attr("get")("torch");
  if (torch.is_none()) return std::nullopt;
  nb::object cuda = torch.attr("cuda");
  if (nb::cast<bool>(cuda.attr("is_current_stream_capturing")()))
    refuse_capturing("torch's current stream");
  nb::object stream = cuda.attr("current_stream")(device);
  return reinterpret_cast<void*>(
      nb::cast<std::uintptr_t>(stream.attr("cuda_stream")));
}

[[noreturn]] void refuse_garbage() {
  throw Error(ErrorKind::request,
              {.code = "loader.closed",
               .what = "cannot use the loader",
               .where = "the loader",
               .why = "it was released",
               .next = "keep a reference to the loader while it is used"});
}

[[noreturn]] void refuse_to_reenter() {
  throw Error(ErrorKind::request,
              {.code = "loader.reentered",
               .what = "cannot use the loader",
               .where = "a function that makes its rows",
               .why = "the loader waits for that function",
               .next = "call the loader from the loop over its batches"});
}

std::shared_ptr<Session> opened_with_messages(const OpenRequest& opening) {
  try {
    return opened(opening);
  } catch (...) {
    write_messages();
    throw;
  }
}

}  // namespace

Engine::Engine(const OpenRequest& opening)
    : Engine(opened_with_messages(opening)) {
  if (opening.rows.function != nullptr)
    functions_.push_back(opening.rows.function);
  write_messages();
}

/// What is ended elsewhere.
struct Engine::Left {
  std::shared_ptr<Session> loader;
  std::vector<std::shared_ptr<Function>> functions;
  std::promise<void> ended;
  std::shared_ptr<Left> itself;  // where it has to stay
};

Engine::Engine(std::shared_ptr<Session> loader)
    : loader_(std::move(loader)),
      left_(std::make_shared<Left>()),
      seed_(static_cast<std::int64_t>(loader_->order().seed)),
      device_(loader_->device().name()) {
  if (loader_->device().memory_kind() == MemoryKind::cuda)
    gpu_ = loader_->device().number();
}

Engine::~Engine() {
  if (loader_ == nullptr) return;
  if (fork_.forked()) {
    new auto(std::move(loader_));  // leaked on purpose: its threads are gone
  } else if (on_engines_thread()) {
    end_elsewhere();
  } else if (!functions_.empty()) {
    // Garbage too may come here, which may hold anything: so not for long.
    std::future<void> ended = end_elsewhere();
    GilRelease meanwhile;
    ended.wait_for(kTurn);
  } else {
    GilRelease meanwhile;  // a statement may take its time to end
    loader_->close();
  }
  release_functions();
}

void Engine::before_it_is_garbage() {
  if (functions_.empty() || fork_.forked()) return;
  end_elsewhere();
}

std::future<void> Engine::end_elsewhere() {
  std::shared_ptr<Left> left = std::move(left_);
  left->loader.swap(loader_);
  left->functions.swap(functions_);
  std::future<void> ended = left->ended.get_future();
  try {
    std::thread([left] {
      left->loader->close();
      {
        GilAcquire lock;
        for (const std::shared_ptr<Function>& function : left->functions)
          function->release();
      }
      left->ended.set_value();
    }).detach();
  } catch (const std::exception&) {
    left->itself = left;  // leaked: it cannot be waited for here
    log_exception(LogLevel::warning,
                  "cannot close a loader that was released: no thread can be "
                  "started for it");
  }
  return ended;
}

void Engine::release_functions() {
  for (const auto& function : std::exchange(functions_, {}))
    function->release();
}

int Engine::visit(visitproc visit, void* arg) const {
  for (const std::shared_ptr<Function>& function : functions_)
    if (int stop = function->visit(visit, arg)) return stop;
  return 0;
}

template <class Work>
auto Engine::with_loader(Work work) {
  fork_.check();
  if (inside_ == std::this_thread::get_id() ||
      std::ranges::any_of(functions_, &Function::runs_here))
    refuse_to_reenter();
  if (loader_ == nullptr) refuse_garbage();
  GilRelease meanwhile;
  std::lock_guard one_at_a_time(mutex_);
  inside_ = std::this_thread::get_id();
  struct Leaves {
    std::atomic<std::thread::id>& inside;
    ~Leaves() { inside = std::thread::id(); }
  } leaves{inside_};
  return work(*loader_);
}

/// Work that follows is queued where torch queues its own.
void Engine::follow_torch() {
  if (!gpu_) return;
  if (std::optional<void*> handle = torch_stream(*gpu_))
    with_loader([&](Session& loader) { loader.use_stream(*handle); });
}

std::shared_ptr<BatchHandle> Engine::held(Batch batch) const {
  return std::make_shared<BatchHandle>(loader_,
                                       loader_->shared(std::move(batch)));
}

std::int64_t Engine::upcoming_epoch() const {
  Position at = loader_->position();
  return at.step == 0 || resumed_ ? at.epoch : at.epoch + 1;
}

std::int64_t Engine::begin_epoch() {
  return with_loader([&](Session& loader) {
    std::int64_t epoch = upcoming_epoch();
    if (epoch != loader.position().epoch) loader.seek({.epoch = epoch});
    return ++iteration_;
  });
}

std::int64_t Engine::begin_here() {
  return with_loader([&](Session& loader) {
    loader.position();  // refuses a loader that was closed
    return ++iteration_;
  });
}

std::int64_t Engine::steps_left() {
  return with_loader([](Session& loader) {
    return loader.steps_per_epoch() - loader.position().step;
  });
}

template <class Take>
void Engine::wait_and(std::int64_t iteration, Take take) {
  write_messages();  // before there is a batch that could be lost
  follow_torch();
  auto taken = [&](Session& loader) {
    if (iteration != iteration_)
      throw Error(
          ErrorKind::request,
          {.code = "loader.iteration",
           .what = "cannot continue this iteration",
           .where = "the loader",
           .why = "a later iteration was started, or the position was set",
           .next = "iterate over the loader again; for two at a time "
                   "open two loaders"});
    if (!loader.ready_within(kTurn)) return false;
    take(loader);
    resumed_ = false;
    return true;
  };
  auto taken_or_asked_to_end = [&](Session& loader) {
    try {
      return taken(loader);
    } catch (const Error& error) {
      // Ctrl-C in a function that makes rows: its batch is made again.
      if (asks_for_an_end(error)) loader.seek(loader.position());
      throw;
    }
  };
  while (!with_loader(taken_or_asked_to_end))
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

NamedBatch Engine::next(std::int64_t iteration) {
  std::shared_ptr<BatchHandle> batch;
  wait_and(iteration,
           [&](Session& loader) { batch = held(promised(loader.next())); });
  return NamedBatch(std::move(batch));
}

FilledBatch Engine::next_into(std::int64_t iteration,
                              std::span<const TensorView> to) {
  std::optional<FilledBatch> batch;
  wait_and(iteration, [&](Session& loader) {
    batch = loader.next_into(to);
    if (!batch) refuse_early_end("the batch that was asked for");
    loader.wait_into();  // Python reads the arrays at once
  });
  return std::move(*batch);
}

std::vector<std::string> Engine::tensor_names() {
  return with_loader([](Session& loader) {
    std::vector<std::string> names;
    for (const BatchTensor& tensor : loader.tensors())
      names.push_back(tensor.name);
    return names;
  });
}

std::vector<std::string> Engine::row_names() {
  return with_loader([](Session& loader) {
    std::vector<std::string> names;
    for (const BatchTensor& tensor : loader.tensors())
      if (tensor.what != BatchTensor::What::weight)
        names.push_back(tensor.name);
    return names;
  });
}

NamedBatch Engine::peek() {
  return NamedBatch(
      with_loader([&](Session& l) { return held(promised(l.peek())); }));
}

void Engine::map(std::shared_ptr<Function> function, RowFunction rows) {
  functions_.push_back(function);
  try {
    with_loader([&](Session& loader) {
      loader.map(std::move(rows));
      ++iteration_;
    });
  } catch (...) {
    std::erase(functions_, function);
    throw;
  }
}

void Engine::set_epoch(std::int64_t epoch) {
  with_loader([&](Session& loader) {
    if (epoch == upcoming_epoch()) return;
    loader.seek({.epoch = epoch});
    resumed_ = false;
    ++iteration_;
  });
}

std::int64_t Engine::steps_per_epoch() {
  return with_loader([](Session& loader) { return loader.steps_per_epoch(); });
}

std::string Engine::state() {
  return with_loader([](Session& loader) { return loader.state().dump(); });
}

void Engine::load_state(const std::string& state) {
  with_loader([&](Session& loader) {
    loader.load_state(Json::parse(state, "the state"));
    resumed_ = true;
    ++iteration_;
  });
}

bool Engine::put_back(Position at) {
  return with_loader([&](Session& loader) {
    if (next_position(loader.order(), at) != loader.position()) return false;
    loader.seek(at);
    resumed_ = true;
    return true;
  });
}

void Engine::pause(std::int64_t iteration) {
  with_loader([&](Session& loader) {
    if (iteration == iteration_) loader.pause();
  });
  write_messages();
}

std::string Engine::report(bool wait) {
  std::string text = with_loader(
      [&](Session& loader) { return report_of(loader, wait).dump(); });
  write_messages();
  return text;
}

std::size_t Engine::release_memory(std::size_t bytes) {
  return with_loader(
      [&](Session& loader) { return loader.release_memory(bytes); });
}

std::string Engine::rank_facts() {
  return with_loader(
      [](Session& loader) { return loader.rank_facts().dump(); });
}

Json Engine::statistics() {
  return with_loader(
      [](Session& loader) { return loader.opened()->statistics(); });
}

Json Engine::classes(const std::string& field) {
  return with_loader(
      [&](Session& loader) { return Json(loader.classes(field)); });
}

void Engine::begin_step() {
  follow_torch();
  with_loader([](Session& loader) { loader.begin_step(); });
}

void Engine::end_step() {
  if (loader_ == nullptr) return;  // garbage, and a generator in a step too
  follow_torch();
  with_loader([](Session& loader) { loader.end_step(); });
}

void Engine::time_elsewhere(bool elsewhere, const std::string& gpu) {
  with_loader([&](Session& loader) { loader.time_elsewhere(elsewhere, gpu); });
}

void Engine::add_step(std::int64_t epoch, std::int64_t rows, std::int64_t wall,
                      std::int64_t compute, std::int64_t wait_data,
                      bool drained) {
  StepParts step{.steps = 1,
                 .samples = rows,
                 .wall = Nanoseconds(wall),
                 .compute = Nanoseconds(compute),
                 .wait_data = Nanoseconds(wait_data),
                 .host = Nanoseconds(wall - compute - wait_data),
                 .drained = drained ? 1 : 0};
  with_loader([&](Session& loader) { loader.add_step(step, epoch); });
}

void Engine::begin_line(std::int64_t epochs, std::int64_t steps) {
  with_loader([&](Session& loader) {
    shown_.reset();
    std::int64_t later = epochs - 1 - loader.position().epoch;
    if (steps >= 0 && later > 0) steps += later * loader.steps_per_epoch();
    auto show = [this](const Progress& progress) { shown_ = progress; };
    loader.report_progress({.progress = show}, epochs, steps);
  });
}

std::string Engine::line(int columns) {
  return with_loader([&](Session&) {
    return shown_ ? progress_line(*shown_, columns) : std::string();
  });
}

std::string Engine::shares() {
  return with_loader(
      [](Session& loader) { return shown_shares(loader.clock().total()); });
}

void Engine::close() {
  if (fork_.forked() || loader_ == nullptr) return;
  with_loader([](Session& loader) { loader.close(); });
  release_functions();
  write_messages();
}

bool Engine::closed() {
  if (loader_ == nullptr) return true;
  return with_loader([](Session& loader) { return loader.closed(); });
}

}  // namespace penstock::python
