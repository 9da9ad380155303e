#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Lets other threads of Python run for a scope, in which nothing of Python
/// may be touched.
///
/// When Python ends, a thread that wants to continue would be torn down in the
/// middle of our code: after end_of_python() it sleeps here instead, for the
/// moments that are left. Only daemon threads see that.
class GilRelease {
 public:
  GilRelease();
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* thread_;
};

/// Stands around calls from our code into Python's, in which another thread may
/// take its turn: the end of Python waits until these have come back, and new
/// ones sleep as above.
class PythonCallScope {
 public:
  PythonCallScope();
  ~PythonCallScope();
  PythonCallScope(const PythonCallScope&) = delete;
  PythonCallScope& operator=(const PythonCallScope&) = delete;
};

/// Python's lock for a scope on any thread: the engine's own take it to call a
/// function, or to release an object.
///
/// After end_of_calls() all threads but the one that ends Python sleep here.
class GilAcquire {
 public:
  GilAcquire();
  ~GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE before_;
};

/// True on threads that Python did not start: a loader that is released there
/// cannot wait for its threads, of which this may be one.
bool on_engines_thread();

/// Both are called once, by the thread that ends Python: before loaders are
/// closed, and when they are. The second waits for functions that are still
/// running: those of loaders that another thread was about to open or to close.
void end_of_python();
void end_of_calls();
/// True after the latter.
bool calls_have_ended();

}  // namespace penstock::python
