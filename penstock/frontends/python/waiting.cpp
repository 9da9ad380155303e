#include "penstock/frontends/python/waiting.h"

#include <unistd.h>

#include <atomic>
#include <thread>

namespace penstock::python {
namespace {

// The thread that ends Python; written once, before the others are let go.
std::atomic<std::thread::id> ends_python{};

}  // namespace

OthersRun::~OthersRun() {
  std::thread::id ends = ends_python;
  while (ends != std::thread::id() && ends != std::this_thread::get_id())
    ::pause();
  PyEval_RestoreThread(thread_);
}

void end_of_python() { ends_python = std::this_thread::get_id(); }

}  // namespace penstock::python
