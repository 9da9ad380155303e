#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Lets other threads of Python run for a scope, in which nothing of Python
/// may be touched.
///
/// When Python ends, a thread that wants to go on would be torn down in the
/// middle of our code: after end_of_python() it sleeps here instead, for the
/// moments that are left. Only daemon threads see that.
class OthersRun {
 public:
  OthersRun() : thread_(PyEval_SaveThread()) {}
  ~OthersRun();
  OthersRun(const OthersRun&) = delete;
  OthersRun& operator=(const OthersRun&) = delete;

 private:
  PyThreadState* thread_;
};

/// Stands around calls from our code into Python's, in which another thread may
/// take its turn: the end of Python waits until these have come back, and new
/// ones sleep as above.
class CallsPython {
 public:
  CallsPython();
  ~CallsPython();
  CallsPython(const CallsPython&) = delete;
  CallsPython& operator=(const CallsPython&) = delete;
};

/// Called once, by the thread that ends Python, before loaders are closed.
void end_of_python();

}  // namespace penstock::python
