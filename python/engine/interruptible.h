#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "python/engine/gil.h"

namespace penstock::python {

using Stop = std::shared_ptr<std::atomic<bool>>;

/// What `work` makes on a thread of its own, so that this one can handle
/// signals meanwhile. It is asked to stop where a signal's handler raises, and
/// may go on for a while: it owns all that it uses. With Python's lock. Throws
/// what `work` throws, or nanobind::python_error.
template <class Made>
Made interruptible(std::function<Made(const Stop&)> work) {
  // How long Ctrl-C waits for its turn at most.
  constexpr std::chrono::milliseconds kTurn(50);
  // How long it then waits for a statement that was sent.
  constexpr std::chrono::milliseconds kPatience(500);
  struct Pending {
    std::function<Made(const Stop&)> work;
    Stop stop = std::make_shared<std::atomic<bool>>(false);
    std::promise<Made> made;

    void run() {
      try {
        made.set_value(work(stop));
      } catch (...) {
        made.set_exception(std::current_exception());
      }
    }
  };
  auto way = std::make_shared<Pending>();
  way->work = std::move(work);
  std::future<Made> made = way->made.get_future();
  std::thread worker([way] { way->run(); });
  auto ends_within = [&](std::chrono::milliseconds time) {
    GilRelease meanwhile;
    return made.wait_for(time) == std::future_status::ready;
  };
  while (!ends_within(kTurn)) {
    if (PyErr_CheckSignals() == 0) continue;
    nanobind::python_error interrupted;
    *way->stop = true;
    // A statement that a server is slow to answer ends later, by itself.
    bool ended = ends_within(kPatience);
    {
      GilRelease meanwhile;  // what was made may have threads that call Python
      ended ? worker.join() : worker.detach();
      made = {};
      way.reset();
    }
    throw interrupted;
  }
  worker.join();
  return made.get();
}

}  // namespace penstock::python
