#include "penstock/exec/stage.h"

#include <cxxabi.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>
#include <typeinfo>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

// Threads that count themselves. `running` is the number of workers that have
// not ended, and the one that takes it to 0 calls `last`, once; add() raises it
// only where it is not 0 yet, so that no worker begins behind `last`. There are
// no locks: `places_` belongs to the thread that owns the stage, and a worker
// touches of it only its own `ended`, as the last thing that it does.

namespace penstock {

struct Stage::State {
  Options options;
  std::atomic<int> running;  // the worker that takes it to 0 was the last

  // An error is handed on before the worker is counted as gone, so whoever sees
  // the last one end has seen every error.
  void run(int worker) noexcept {
    try {
      options.body(worker);
    } catch (...) {
      if (options.failed)
        options.failed(named_error(std::current_exception(), options.name));
    }
    if (running.fetch_sub(1) == 1 && options.last) options.last();
  }
};

/// A thread, or the room for the next one of that number.
struct Stage::Place {
  int number = 0;
  std::thread thread;
  std::atomic<bool> ended{false};
};

// `running` is set to all workers before the first one starts: were it raised
// one by one, the first could end, find itself alone and call `last` too early.
Stage::Stage(Options options) : state_(std::make_unique<State>()) {
  int workers = options.workers;
  state_->options = std::move(options);
  state_->running = workers > 0 ? workers : 1;
  const std::string& stage = state_->options.name;
  places_.reserve(static_cast<std::size_t>(workers));
  std::size_t started = 0;
  try {
    for (; started < static_cast<std::size_t>(workers); ++started)
      start(free_place());
    return;
  } catch (const std::exception& error) {
    // Lack of memory may be the reason, so nothing is allocated before the
    // threads have ended.
    if (state_->options.failed)
      state_->options.failed(std::current_exception());
    join();
    throw Error(
        ErrorKind::request,
        {.code = "exec.threads",
         .what = stage + ": cannot start thread " +
                 std::to_string(started + 1) + " of " + std::to_string(workers),
         .where = "the threads of this process",
         .why = error.what(),
         .next = "request fewer workers, or raise the limits on "
                 "threads and memory of this process"});
  }
}

Stage::~Stage() { join(); }

Stage::Place& Stage::free_place() {
  for (std::unique_ptr<Place>& place : places_)
    if (!place->thread.joinable()) return *place;
  places_.push_back(std::make_unique<Place>());
  places_.back()->number = static_cast<int>(places_.size()) - 1;
  return *places_.back();
}

void Stage::start(Place& place) {
  place.ended = false;
  // Before the thread: what throws when it runs would leave it uncounted.
  // Linux shows 15 letters: "read-0".
  char name[16];
  std::snprintf(name, sizeof(name), "%.11s-%d", state_->options.name.c_str(),
                place.number);
  place.thread = std::thread([state = state_.get(), &place] {
    state->run(place.number);
    place.ended = true;
  });
  pthread_setname_np(place.thread.native_handle(), name);
}

int Stage::add(int workers) {
  for (std::unique_ptr<Place>& place : places_)
    if (place->thread.joinable() && place->ended) place->thread.join();
  for (int added = 0; added < workers; ++added) {
    int running = state_->running;
    do {
      if (running == 0) return added;  // the last one has closed the output
    } while (!state_->running.compare_exchange_weak(running, running + 1));
    try {
      start(free_place());
    } catch (const std::exception& error) {
      if (state_->running.fetch_sub(1) == 1 && state_->options.last)
        state_->options.last();
      log(LogLevel::warning, state_->options.name +
                                 ": the system allows only " +
                                 std::to_string(running) + ": " + error.what());
      return added;
    }
  }
  return workers;
}

void Stage::run_inline() { state_->run(0); }

void Stage::join() {
  for (std::unique_ptr<Place>& place : places_)
    if (place->thread.joinable()) place->thread.join();
}

namespace {

Error unexpected(const std::string& stage, std::string why) {
  return Error(ErrorKind::internal,
               {.code = "internal.exception",
                .what = stage + ": unexpected exception",
                .where = "the program",
                .why = std::move(why),
                .next = "this is a bug in Penstock, please report it"});
}

Error no_memory(const std::string& stage) {
  return Error(ErrorKind::out_of_memory,
               {.code = "memory.host",
                .what = stage + ": the host is out of memory",
                .where = "host memory",
                .why = "a memory allocation failed",
                .next = "use less memory ('loader.cache': \"none\"), or a "
                        "machine with more"});
}

/// The type of the exception that is being handled: "int".
std::string type_of_current_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown type";
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return name != nullptr ? name.get() : type->name();
}

/// Throws `error` as an Error that carries the stage's name.
[[noreturn]] void throw_named(const std::exception_ptr& error,
                              const std::string& stage) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    throw known.in_stage(stage);
  } catch (const std::bad_alloc&) {
    throw no_memory(stage);
  } catch (const std::system_error& other) {
    if (other.code() == std::errc::not_enough_memory) throw no_memory(stage);
    throw unexpected(stage, other.what());
  } catch (const std::exception& other) {
    throw unexpected(stage, other.what());
  } catch (...) {
    throw unexpected(stage, "a value of type " + type_of_current_exception() +
                                " was thrown, which is not a std::exception");
  }
}

}  // namespace

// All threads wait until the last one was started, so they are there at the
// same time, which is what a limit of the system refuses.
void try_threads(const std::string& name, int threads) {
  std::atomic<bool> end = false;
  auto release = [&] {
    end = true;
    end.notify_all();
  };
  Stage all({.name = name,
             .workers = threads,
             .body = [&](int) { end.wait(false); },
             .failed = [&](std::exception_ptr) { release(); },
             .last = {}});
  release();
}

std::exception_ptr named_error(std::exception_ptr error,
                               const std::string& stage) noexcept {
  try {
    throw_named(error, stage);
  } catch (const Error&) {
    return std::current_exception();
  } catch (...) {  // no memory for its name
    return error;
  }
}

}  // namespace penstock
