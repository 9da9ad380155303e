#include "python/engine/gil.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace penstock::python {
namespace {

// The thread that ends Python; written once, before the others are released.
std::atomic<std::thread::id> ends_python{};
// Of all threads, and of this one.
std::atomic<int> calls{0};
thread_local int own_calls = 0;
// Threads that are about to take Python's lock. Each counts itself before it
// looks at ends_python, and that is written before the count is looked at: so
// either the thread sleeps, or the end of Python waits for it.
std::atomic<int> coming_back{0};
// The same for GilAcquire and calls_ended, but counted to the end of the
// scope.
std::atomic<int> holds{0};
thread_local int own_holds = 0;
std::atomic<bool> calls_ended{false};
thread_local bool engines_own = false;

bool another_ends_python() {
  std::thread::id ends = ends_python;
  return ends != std::thread::id() && ends != std::this_thread::get_id();
}

/// True on threads that are to sleep. Not inside a function that the engine
/// calls: closing its loader waits for it.
bool is_over() { return own_holds == 0 && another_ends_python(); }

/// Whether this thread does, even if another gave the lock up meanwhile. Every
/// Python has the function, but not as a part of its stable interface.
bool has_pythons_lock() {
  using Check = int (*)();
  static const auto check =
      reinterpret_cast<Check>(::dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return PyGILState_GetThisThreadState() != nullptr && check != nullptr &&
         check() == 1;
}

/// A forked child has none of the other threads.
void count_this_thread_alone() {
  calls = own_calls;
  coming_back = 0;
  holds = own_holds;
}

[[maybe_unused]] const int forks_are_heard =
    ::pthread_atfork(nullptr, nullptr, count_this_thread_alone);

}  // namespace

GilRelease::GilRelease() : thread_(PyEval_SaveThread()) {}

GilRelease::~GilRelease() {
  ++coming_back;
  if (is_over()) {
    --coming_back;
    calls -= own_calls;  // they do not come back
    for (;;) ::pause();
  }
  PyEval_RestoreThread(thread_);
  --coming_back;
}

PythonCallScope::PythonCallScope() {
  if (is_over()) GilRelease for_ever;
  ++calls;
  ++own_calls;
}

PythonCallScope::~PythonCallScope() {
  --calls;
  --own_calls;
}

GilAcquire::GilAcquire() {
  ++holds;
  if (calls_ended && is_over()) {
    --holds;
    if (has_pythons_lock()) PyEval_SaveThread();
    for (;;) ::pause();
  }
  if (PyGILState_GetThisThreadState() == nullptr) engines_own = true;
  ++own_holds;
  before_ = PyGILState_Ensure();
}

GilAcquire::~GilAcquire() {
  PyGILState_Release(before_);
  --own_holds;
  --holds;
}

bool on_engines_thread() { return engines_own; }

void end_of_python() {
  ends_python = std::this_thread::get_id();
  for (int turns = 0; calls + coming_back > 0 && turns < 1000; ++turns) {
    GilRelease meanwhile;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void end_of_calls() {
  calls_ended = true;
  while (holds > own_holds) {
    GilRelease meanwhile;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool calls_have_ended() { return calls_ended; }

}  // namespace penstock::python
