#include "penstock/exec/stage.h"

#include <cxxabi.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <system_error>
#include <typeinfo>

#include "penstock/base/error.h"

namespace penstock {

struct Stage::State {
  Options options;
  std::atomic<int> running;  // the worker that takes it to 0 was the last

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

Stage::Stage(Options options) : state_(std::make_unique<State>()) {
  int workers = options.workers;
  state_->options = std::move(options);
  state_->running = workers > 0 ? workers : 1;
  threads_.reserve(static_cast<std::size_t>(workers));
  try {
    for (int i = 0; i < workers; ++i) start(static_cast<std::size_t>(i));
    return;
  } catch (const std::exception& error) {
    // Lack of memory may be the reason, so nothing is allocated before the
    // threads have ended.
    std::size_t started = threads_.size();
    if (state_->options.failed)
      state_->options.failed(std::current_exception());
    join();
    refuse(error, started, static_cast<std::size_t>(workers));
  }
}

void Stage::start(std::size_t number) {
  threads_.emplace_back(
      [state = state_.get(), number] { state->run(static_cast<int>(number)); });
  // Linux shows 15 letters: "read-0".
  std::string name =
      state_->options.name.substr(0, 12) + "-" + std::to_string(number);
  pthread_setname_np(threads_.back().native_handle(), name.c_str());
}

void Stage::refuse(const std::exception& error, std::size_t started,
                   std::size_t workers) const {
  throw Error(
      ErrorKind::request,
      {.code = "exec.threads",
       .what = state_->options.name + ": cannot start thread " +
               std::to_string(started + 1) + " of " + std::to_string(workers),
       .where = "this process",
       .why = error.what(),
       .next = "request fewer workers, or raise the limits on "
               "threads and memory of this process"});
}

void Stage::add(int workers) {
  for (int i = 0; i < workers; ++i) {
    int running = state_->running;
    do {
      if (running == 0) return;  // the last one has closed the output
    } while (!state_->running.compare_exchange_weak(running, running + 1));
    try {
      start(threads_.size());
    } catch (const std::exception& error) {
      if (state_->running.fetch_sub(1) == 1 && state_->options.last)
        state_->options.last();
      refuse(error, threads_.size(),
             threads_.size() + static_cast<std::size_t>(workers - i));
    }
  }
}

Stage::~Stage() { join(); }

void Stage::run_inline() { state_->run(0); }

void Stage::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
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
                .what = stage + ": the host has no memory left",
                .where = "this process",
                .why = "allocation failed",
                .next = "give the job less ('loader.cache': \"none\") or the "
                        "machine more"});
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
