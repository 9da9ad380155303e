#include "python/engine/function.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>

#include "penstock/base/dlpack.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

using NumpyArray = nb::ndarray<nb::numpy>;

/// `view` as numpy sees it, while `owner` is there.
nb::object numpy_view(const TensorView& view, nb::handle owner) {
  DlType type = dl_type_of(view.dtype);
  std::vector<std::size_t> shape(view.shape.begin(), view.shape.end());
  return nb::cast(
      NumpyArray(view.data, shape.size(), shape.data(), owner, nullptr,
                 nb::dlpack::dtype{type.code, type.bits, 1}),
      nb::rv_policy::reference);
}

nb::list numpy_views(std::span<const TensorView> views, nb::handle owner) {
  nb::list list;
  for (const TensorView& view : views) list.append(numpy_view(view, owner));
  return list;
}

nb::object owner_of(std::shared_ptr<const void> memory) {
  return nb::capsule(new auto(std::move(memory)), [](void* kept) noexcept {
    delete static_cast<std::shared_ptr<const void>*>(kept);
  });
}

}  // namespace

nb::object numpy_array(const TensorView& view,
                       std::shared_ptr<const void> memory) {
  return numpy_view(view, owner_of(std::move(memory)));
}

nb::object numpy_copy(std::span<const std::int64_t> ids) {
  auto copy = std::make_shared<std::vector<SampleId>>(ids.begin(), ids.end());
  TensorView view{.data = reinterpret_cast<std::byte*>(copy->data()),
                  .dtype = Dtype::int64,
                  .shape = {std::ssize(ids)}};
  return numpy_array(view, std::move(copy));
}

namespace {

/// Views of memory that is the engine's again after the call: a traceback that
/// keeps the list finds it empty then.
struct OutputsOfOneCall {
  explicit OutputsOfOneCall(std::span<const TensorView> views)
      : list(numpy_views(views, {})) {}
  ~OutputsOfOneCall() {
    PyList_SetSlice(list.ptr(), 0, PY_SSIZE_T_MAX, nullptr);
  }
  OutputsOfOneCall(const OutputsOfOneCall&) = delete;
  OutputsOfOneCall& operator=(const OutputsOfOneCall&) = delete;

  const nb::list list;
};

/// Its text, or "" where that cannot be made. UTF-8 has no lone surrogates, of
/// which a file's name may hold some: they are shown by their numbers.
std::string shown(nb::handle object) {
  nb::object text = nb::steal(PyObject_Str(object.ptr()));
  nb::object bytes;
  if (text.is_valid())
    bytes = nb::steal(
        PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) {
    PyErr_Clear();
    return {};
  }
  return {PyBytes_AsString(bytes.ptr()),
          static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string type_and_text(nb::handle raised) {
  return shown(nb::getattr(raised.type(), "__name__")) + ": " + shown(raised);
}

struct Running;
thread_local const Running* innermost = nullptr;

/// A call that this thread is in, and the one around it.
struct Running {
  explicit Running(const Function* called)
      : function(called), outer(std::exchange(innermost, this)) {}
  ~Running() { innermost = outer; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const Function* const function;
  const Running* const outer;
};

}  // namespace

Function::Function(nb::object call) : call_(nullptr) {
  if (calls_have_ended())
    throw Error(ErrorKind::request,
                {.code = "loader.ending",
                 .what = "cannot produce rows with a function",
                 .where = "an atexit handler",
                 .why = "Python is shutting down, and threads can no longer "
                        "call functions",
                 .next = "register the handler after importing penstock, so "
                         "that the handler runs earlier"});
  call_ = call.release().ptr();
}

Function::~Function() {
  if (call_ == nullptr || !Py_IsInitialized()) return;
  GilAcquire lock;
  release();
}

void Function::make_rows(const RowCall& rows) {
  call([&](const nb::object& function) {
    nb::object inputs = numpy_views(rows.in, owner_of(rows.in_memory));
    OutputsOfOneCall outputs(rows.out);
    function(numpy_copy(rows.ids), inputs, outputs.list, rows.at.epoch,
             rows.at.step);
  });
}

void Function::call(const std::function<void(nb::object)>& work) {
  // Outlives the lock, with which a thread's own objects are released.
  Running here(this);
  GilAcquire lock;
  if (call_ == nullptr)
    throw Error(ErrorKind::request,
                {.code = "loader.closed",
                 .what = "cannot call a Python function",
                 .where = "the loader",
                 .why = "it was closed",
                 .next = "close the loader after the last batch"});
  try {
    // One more reference: what runs is no garbage.
    work(nb::borrow(call_));
  } catch (const nb::python_error& raised) {
    throw error_of(raised);
  }
}

bool Function::runs_here() const {
  for (const Running* each = innermost; each != nullptr; each = each->outer)
    if (each->function == this) return true;
  return false;
}

void Function::release() { Py_XDECREF(std::exchange(call_, nullptr)); }

int Function::visit(visitproc visit, void* arg) const {
  Py_VISIT(call_);
  for (PyObject* raised : raised_) Py_VISIT(raised);
  return 0;
}

std::shared_ptr<PyObject> Function::kept(nb::handle raised) {
  raised_.push_back(raised.ptr());
  return {raised.inc_ref().ptr(), [self = shared_from_this()](PyObject* held) {
            if (!Py_IsInitialized()) return;
            GilAcquire lock;
            self->raised_.erase(std::ranges::find(self->raised_, held));
            Py_DECREF(held);
          }};
}

/// What a call raised, as an error that keeps it.
Error Function::error_of(const nb::python_error& raised) {
  nb::handle value = raised.value();
  auto text = [&](const char* part) {
    nb::object found = nb::getattr(value, part, nb::none());
    return found.is_none() ? std::string() : shown(found);
  };
  std::string kind = text("kind");
  ErrorKind known = ErrorKind::transform;
  for (ErrorKind each : {ErrorKind::request, ErrorKind::source})
    if (kind == name_of(each)) known = each;
  std::string why = text("why");
  return Error(known,
               {.code = kind.empty() ? "python.raised" : text("code"),
                .what = kind.empty() ? "a call to Python failed" : text("what"),
                .where = text("where"),
                .why = why.empty() ? type_and_text(value) : why,
                .next = text("next")})
      .caused_by(kept(value));
}

nb::object raised_in_python(const Error& error) {
  auto* object = static_cast<const PyObject*>(error.cause().get());
  if (object == nullptr) return {};
  return nb::borrow(const_cast<PyObject*>(object));
}

bool asks_for_an_end(const Error& error) {
  if (error.cause() == nullptr) return false;
  GilAcquire lock;
  nb::object raised = raised_in_python(error);
  return PyObject_IsInstance(raised.ptr(), PyExc_Exception) == 0;
}

}  // namespace penstock::python
