#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "penstock/dataset/dataset.h"

namespace penstock::python {

namespace nb = nanobind;

/// What `view` shows as numpy sees it; the array keeps `memory`.
nb::object numpy_array(const TensorView& view,
                       std::shared_ptr<const void> memory);

/// A function of Python that makes rows, called on the threads of an engine.
///
/// It is `call(ids, inputs, outputs, epoch, step)`, where `ids` is an array [n]
/// of int64, and the other two are lists of arrays [n, ...], to be read and to
/// be written. The list of outputs is empty again when the call returns; an
/// array out of it must not outlive the call. What it raises is raised by the
/// loader in the batch's turn.
///
/// Rows, and so batches, keep this object; its engine shows what it holds to
/// Python's garbage collector, and ends that when it is closed. All but
/// make_rows() and call() is called with Python's lock.
class Function : public std::enable_shared_from_this<Function> {
 public:
  /// Throws Error(request) where Python is at its end.
  explicit Function(nb::object call);
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  /// Takes Python's lock. Throws Error.
  void make_rows(const RowCall& rows);
  /// Calls it by `work`, with Python's lock; what Python raises is thrown as an
  /// Error that keeps it.
  void call(const std::function<void(nb::object function)>& work);
  /// True on a thread that is in one of these two.
  bool runs_here() const;
  /// No thread calls it after this.
  void release();
  /// Its part in a tp_traverse: the function, and what it raised that errors
  /// still keep.
  int visit(visitproc visit, void* arg) const;

 private:
  std::shared_ptr<PyObject> kept(nb::handle raised);
  Error error_of(const nb::python_error& raised);

  PyObject* call_;  ///< null once it was released
  std::vector<PyObject*> raised_;
};

/// A copy, as an array of numpy. With Python's lock.
nb::object numpy_copy(std::span<const std::int64_t> ids);

/// The exception of Python that an error came of; null for all other errors.
nb::object raised_in_python(const Error& error);
/// True when that is no failure but asks for an end: KeyboardInterrupt...
/// Takes Python's lock.
bool asks_for_an_end(const Error& error);

}  // namespace penstock::python
