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

/// True on all threads but the one that ends Python, once it does.
bool is_over() {
  std::thread::id ends = ends_python;
  return ends != std::thread::id() && ends != std::this_thread::get_id();
}

}  // namespace

OthersRun::~OthersRun() {
  if (is_over()) {
    calls -= own_calls;  // they do not come back
    for (;;) ::pause();
  }
  PyEval_RestoreThread(thread_);
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
  for (int turns = 0; calls > 0 && turns < 1000; ++turns) {
    OthersRun meanwhile;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace penstock::python
