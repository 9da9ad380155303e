#include "penstock/frontends/python/waiting.h"

#include <unistd.h>

#include <atomic>
#include <thread>

namespace penstock::python {
namespace {

// The thread that ends Python; written once, before the others are let go.
std::atomic<std::thread::id> ends_python{};
// Of all threads, and of this one.
std::atomic<int> calls{0};
thread_local int own_calls = 0;
// Threads that are about to take Python's lock. Each counts itself before it
// looks at ends_python, and that is written before the count is looked at: so
// either the thread sleeps, or the end of Python waits for it.
std::atomic<int> coming_back{0};

/// True on all threads but the one that ends Python, once it does.
bool is_over() {
  std::thread::id ends = ends_python;
  return ends != std::thread::id() && ends != std::this_thread::get_id();
}

}  // namespace

OthersRun::~OthersRun() {
  ++coming_back;
  if (is_over()) {
    --coming_back;
    calls -= own_calls;  // they do not come back
    for (;;) ::pause();
  }
  PyEval_RestoreThread(thread_);
  --coming_back;
}

CallsPython::CallsPython() {
  if (is_over()) OthersRun for_ever;
  ++calls;
  ++own_calls;
}

CallsPython::~CallsPython() {
  --calls;
  --own_calls;
}

void end_of_python() {
  ends_python = std::this_thread::get_id();
  for (int turns = 0; calls + coming_back > 0 && turns < 1000; ++turns) {
    OthersRun meanwhile;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace penstock::python
