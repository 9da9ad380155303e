#include "penstock/frontends/python/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <future>
#include <thread>

#include "penstock/frontends/python/batches.h"
#include "penstock/frontends/python/messages.h"
#include "penstock/frontends/python/waiting.h"

namespace penstock::python {
namespace {

// How long Ctrl-C waits for its turn at most.
constexpr std::chrono::milliseconds kTurn(50);
// How long it then waits for a statement that was sent.
constexpr std::chrono::milliseconds kPatience(500);

Job job_of(const Opening& opening) {
  Json document = Json::parse(opening.job, "the job");
  for (const std::string& set : opening.sets) apply_setting(document, set);
  return opening.rows ? parse_job_of_rows(document) : parse_job(document);
}

Side side_named(const std::string& name) {
  if (name == "train") return Side::train;
  if (name == "val") return Side::val;
  throw Error(ErrorKind::request, {.code = "loader.side",
                                   .what = "cannot open the loader",
                                   .where = "side",
                                   .why = "found '" + name + "'",
                                   .next = "use \"train\" or \"val\""});
}

/// An opening on a thread of its own, so that this one hears signals meanwhile.
struct OnTheWay {
  Opening opening;
  OpenOptions options;
  std::promise<std::shared_ptr<JobLoader>> made;

  void open() {
    try {
      made.set_value(open_loader(job_of(opening), options));
    } catch (...) {
      made.set_exception(std::current_exception());
    }
  }
};

std::shared_ptr<JobLoader> opened(const Opening& opening) {
  auto way = std::make_shared<OnTheWay>();
  way->opening = opening;
  way->options = {.side = side_named(opening.side),
                  .rank = {opening.rank, opening.world},
                  .batches = -1,
                  .timed = true,
                  .stop = std::make_shared<std::atomic<bool>>(false),
                  .rows = opening.rows};
  std::future<std::shared_ptr<JobLoader>> made = way->made.get_future();
  std::thread opener([way] { way->open(); });
  auto ends_within = [&](std::chrono::milliseconds time) {
    OthersRun meanwhile;
    return made.wait_for(time) == std::future_status::ready;
  };
  while (!ends_within(kTurn)) {
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error interrupted;
    *way->options.stop = true;
    // A statement that a server is slow to answer ends later, by itself.
    if (ends_within(kPatience))
      opener.join();
    else
      opener.detach();
    throw interrupted;
  }
  opener.join();
  return made.get();
}

/// The stream that torch queues work on, where torch is used at all.
std::optional<void*> torch_stream(int device) {
  CallsPython call;
  nb::object modules = nb::module_::import_("sys").attr("modules");
  nb::object torch = modules.attr("get")("torch");
  if (torch.is_none()) return std::nullopt;
  nb::object cuda = torch.attr("cuda");
  if (nb::cast<bool>(cuda.attr("is_current_stream_capturing")()))
    throw Error(ErrorKind::request,
                {.code = "loader.capturing",
                 .what = "cannot give a batch",
                 .where = "torch's current stream",
                 .why = "a CUDA graph is being captured on it, which would "
                        "repeat this one batch",
                 .next = "take the batch before the capture, and copy each "
                         "batch into the graph's own tensors"});
  nb::object stream = cuda.attr("current_stream")(device);
  return reinterpret_cast<void*>(
      nb::cast<std::uintptr_t>(stream.attr("cuda_stream")));
}

[[noreturn]] void refuse_to_reenter() {
  throw Error(ErrorKind::request,
              {.code = "loader.reentered",
               .what = "cannot use the loader",
               .where = "a function that makes its rows",
               .why = "the loader waits for that function",
               .next = "call the loader from the loop over its batches"});
}

bool came_of_a_wish_to_end(const Error& error) {
  if (error.cause() == nullptr) return false;
  nb::gil_scoped_acquire lock;
  return asks_for_an_end(raised_in_python(error));
}

}  // namespace

Engine::Engine(const Opening& opening) {
  try {
    loader_ = opened(opening);
  } catch (...) {
    tell_messages();
    throw;
  }
  seed_ = static_cast<std::int64_t>(loader_->order().seed);
  device_ = loader_->device().name();
  tell_messages();
}

Engine::~Engine() {
  if (fork_.forked()) {
    new auto(std::move(loader_));  // leaked on purpose: its threads are gone
    return;
  }
  OthersRun meanwhile;  // a statement may take its time to end
  loader_->close();
}

template <class Work>
auto Engine::with_loader(Work work) {
  fork_.check();
  if (inside_ == std::this_thread::get_id()) refuse_to_reenter();
  OthersRun meanwhile;
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
  if (loader_->device().memory_kind() != MemoryKind::cuda) return;
  if (std::optional<void*> handle = torch_stream(loader_->device().number()))
    with_loader([&](JobLoader& loader) { loader.use_stream(*handle); });
}

std::int64_t Engine::upcoming_epoch() const {
  Position at = loader_->position();
  return at.step == 0 || resumed_ ? at.epoch : at.epoch + 1;
}

std::int64_t Engine::begin_epoch() {
  return with_loader([&](JobLoader& loader) {
    std::int64_t epoch = upcoming_epoch();
    if (epoch != loader.position().epoch) loader.seek({.epoch = epoch});
    return ++iteration_;
  });
}

std::int64_t Engine::begin_here() {
  return with_loader([&](JobLoader& loader) {
    loader.position();  // refuses a loader that was closed
    return ++iteration_;
  });
}

std::int64_t Engine::steps_left() {
  return with_loader([](JobLoader& loader) {
    return loader.steps_per_epoch() - loader.position().step;
  });
}

NamedBatch Engine::next(std::int64_t iteration) {
  std::optional<Batch> batch;
  follow_torch();
  auto taken = [&](JobLoader& loader) {
    if (iteration != iteration_)
      throw Error(ErrorKind::request,
                  {.code = "loader.iteration",
                   .what = "cannot go on with this iteration",
                   .where = "the loader",
                   .why = "a later one was begun, or the position was set",
                   .next = "iterate over the loader anew; for two at a time "
                           "open two loaders"});
    if (!loader.ready_within(kTurn)) return false;
    batch = loader.next();
    resumed_ = false;
    return true;
  };
  auto taken_or_asked_to_end = [&](JobLoader& loader) {
    try {
      return taken(loader);
    } catch (const Error& error) {
      // Ctrl-C in a function that makes rows: its batch is made anew.
      if (came_of_a_wish_to_end(error)) loader.seek(loader.position());
      throw;
    }
  };
  while (!with_loader(taken_or_asked_to_end))
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  tell_messages();
  return NamedBatch(std::make_shared<Held>(loader_, std::move(*batch)));
}

NamedBatch Engine::peek() {
  std::optional<Batch> batch =
      with_loader([](JobLoader& loader) { return loader.peek(); });
  return NamedBatch(std::make_shared<Held>(loader_, std::move(*batch)));
}

void Engine::map(RowFunction function) {
  with_loader([&](JobLoader& loader) {
    loader.map(std::move(function));
    ++iteration_;
  });
}

void Engine::set_epoch(std::int64_t epoch) {
  with_loader([&](JobLoader& loader) {
    if (epoch == upcoming_epoch()) return;
    loader.seek({.epoch = epoch});
    resumed_ = false;
    ++iteration_;
  });
}

std::int64_t Engine::steps_per_epoch() {
  return with_loader(
      [](JobLoader& loader) { return loader.steps_per_epoch(); });
}

std::string Engine::state() {
  return with_loader([](JobLoader& loader) { return loader.state().dump(); });
}

void Engine::go_on(const std::string& state) {
  with_loader([&](JobLoader& loader) {
    loader.go_on(Json::parse(state, "the state"));
    resumed_ = true;
    ++iteration_;
  });
}

void Engine::put_back(const NamedBatch& batch) {
  with_loader([&](JobLoader& loader) {
    loader.seek(batch.held().batch().at());
    resumed_ = true;
  });
}

void Engine::rest(std::int64_t iteration) {
  with_loader([&](JobLoader& loader) {
    if (iteration == iteration_) loader.rest();
  });
}

std::string Engine::report(bool wait) {
  std::string text = with_loader(
      [&](JobLoader& loader) { return loader.report(wait).dump(); });
  tell_messages();
  return text;
}

void Engine::begin_step() {
  follow_torch();
  with_loader([](JobLoader& loader) { loader.begin_step(); });
}

void Engine::end_step() {
  follow_torch();
  with_loader([](JobLoader& loader) { loader.end_step(); });
}

void Engine::time_elsewhere(bool elsewhere) {
  with_loader([&](JobLoader& loader) { loader.time_elsewhere(elsewhere); });
}

void Engine::tell_step(std::int64_t epoch, std::int64_t wall,
                       std::int64_t compute, std::int64_t wait_data) {
  StepParts step{.steps = 1,
                 .wall = Nanoseconds(wall),
                 .compute = Nanoseconds(compute),
                 .wait_data = Nanoseconds(wait_data),
                 .host = Nanoseconds(wall - compute - wait_data)};
  with_loader([&](JobLoader& loader) { loader.tell_step(step, epoch); });
}

void Engine::begin_line(std::int64_t epochs, std::int64_t steps) {
  with_loader([&](JobLoader& loader) {
    line_.clear();
    std::int64_t later = epochs - 1 - loader.position().epoch;
    if (steps >= 0 && later > 0) steps += later * loader.steps_per_epoch();
    loader.tell_progress(
        [this](const Progress& progress) { line_ = progress_line(progress); },
        epochs, steps);
  });
}

std::string Engine::line() {
  return with_loader([&](JobLoader&) { return line_; });
}

std::string Engine::shares() {
  return with_loader(
      [](JobLoader& loader) { return shown_shares(loader.parts()); });
}

void Engine::close() {
  if (fork_.forked()) return;
  with_loader([](JobLoader& loader) { loader.close(); });
  tell_messages();
}

bool Engine::closed() {
  return with_loader([](JobLoader& loader) { return loader.closed(); });
}

namespace {

std::string source_section(const std::string& uri) {
  SourceSpec spec = parse_source_spec(Json(uri), "source");
  Json json;
  json["kind"] = spec.kind;
  if (!spec.path.empty()) json["path"] = spec.path;
  if (!spec.uri.empty()) json["uri"] = spec.uri;
  if (!spec.table.empty()) json["table"] = spec.table;
  return json.dump();
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<Engine>(module, "Engine",
                     "What penstock.Loader is made of; settings are JSON.")
      .def("epoch", &Batches::epoch, nb::arg("watch"))
      .def("batches", &Batches::here, nb::arg("steps").none(), nb::arg("watch"))
      .def("peek", &Engine::peek)
      .def(
          "map",
          [](Engine& engine, nb::object call, std::vector<MadeTensor> tensors,
             std::string fingerprint, bool whole_batches) {
            engine.map(function_of(std::move(call), tensors,
                                   std::move(fingerprint), whole_batches));
          },
          nb::arg("call"), nb::arg("tensors"), nb::arg("fingerprint"),
          nb::arg("whole_batches"))
      .def_prop_ro("seed", &Engine::seed)
      .def("set_epoch", &Engine::set_epoch, nb::arg("epoch"))
      .def("steps_per_epoch", &Engine::steps_per_epoch)
      .def("state", &Engine::state)
      .def("go_on", &Engine::go_on, nb::arg("state"))
      .def("report", &Engine::report, nb::arg("wait"))
      .def("begin_step", &Engine::begin_step)
      .def("end_step", &Engine::end_step)
      .def("time_elsewhere", &Engine::time_elsewhere, nb::arg("elsewhere"))
      .def("tell_step", &Engine::tell_step, nb::arg("epoch"), nb::arg("wall"),
           nb::arg("compute"), nb::arg("wait_data"),
           "Nanoseconds of a step that somebody else has timed.")
      .def_prop_ro("device", &Engine::device)
      .def("begin_line", &Engine::begin_line, nb::arg("epochs"),
           nb::arg("steps"))
      .def("line", &Engine::line)
      .def("shares", &Engine::shares)
      .def("close", &Engine::close)
      .def("closed", &Engine::closed);
  module.def(
      "open",
      [](std::string job, std::vector<std::string> sets, std::string side,
         int rank, int world, const RowsMaker* rows) {
        return std::make_shared<Engine>(
            Opening{std::move(job), std::move(sets), std::move(side), rank,
                    world, rows != nullptr ? *rows : RowsMaker()});
      },
      nb::arg("job"), nb::arg("sets"), nb::arg("side"), nb::arg("rank"),
      nb::arg("world"), nb::arg("rows").none());
  module.def("source_section", &source_section, nb::arg("uri"));
}

}  // namespace penstock::python
