#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// What Python's garbage collector asks of objects that hold others of Python,
/// as slots of their types: T::visit(visit, arg), with Py_VISIT for each strong
/// reference that no other object shows, and T::clear().
template <class T>
int tp_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nanobind::inst_ready(self)) return 0;
  return nanobind::inst_ptr<T>(self)->visit(visit, arg);
}

template <class T>
int tp_clear(PyObject* self) {
  if (nanobind::inst_ready(self)) nanobind::inst_ptr<T>(self)->clear();
  return 0;
}

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace penstock::python
