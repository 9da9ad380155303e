#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "penstock/base/printable.h"
#include "python/engine/batch.h"
#include "python/engine/convert.h"
#include "python/engine/dlpack.h"

namespace penstock::python {
namespace {

nb::tuple shape_of(const Field& field) {
  const Shape& shape = field.view().shape;
  nb::object made = nb::steal(PyTuple_New(std::ssize(shape)));
  for (std::size_t i = 0; i < shape.size(); ++i)
    PyTuple_SetItem(made.ptr(), static_cast<Py_ssize_t>(i),
                    PyLong_FromLongLong(shape[i]));
  return nb::cast<nb::tuple>(made);
}

const char* numpy_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return "<f4";
    case Dtype::float64:
      return "<f8";
    case Dtype::int64:
      return "<i8";
    case Dtype::boolean:
      return "|b1";
    case Dtype::uint8:
      return "|u1";
    case Dtype::int8:
      return "|i1";
    case Dtype::int16:
      return "<i2";
    case Dtype::uint16:
      return "<u2";
    case Dtype::int32:
      return "<i4";
    case Dtype::uint32:
      return "<u4";
    case Dtype::uint64:
      return "<u8";
    case Dtype::float16:
      return "<f2";
    case Dtype::bfloat16:
      break;
  }
  throw nb::attribute_error("numpy has no bfloat16: use .torch() or .jax()");
}

nb::dict array_interface(const Field& field) {
  field.held()->fork().check();
  if (!field.held()->on_host())
    throw nb::attribute_error("a field on a GPU has no __array_interface__");
  wait_on_host(*field.held());
  nb::dict made;
  made["shape"] = shape_of(field);
  made["typestr"] = numpy_type(field.view().dtype);
  made["data"] = nb::make_tuple(
      reinterpret_cast<std::uintptr_t>(field.view().data), false);
  made["version"] = 3;
  return made;
}

/// Before the field is read by the library that asked for it: see the array
/// API's
/// `__dlpack__` for what a stream's number means.
void wait_for(const Field& field, const std::optional<std::int64_t>& stream) {
  BatchHandle& held = *field.held();
  if (held.on_host()) {
    if (stream) throw nb::buffer_error("host memory has no streams");
    return wait_on_host(held);
  }
  if (stream == -1) return;  // the consumer sees to it
  // 1 and nothing at all: the legacy default stream, which is null; 2: the
  // default stream of the thread, whose handle is 2 as well.
  bool legacy = !stream || *stream == 1;
  held.wait_on(legacy ? nullptr : reinterpret_cast<void*>(*stream));
}

nb::object dlpack(const Field& field, std::optional<std::int64_t> stream,
                  std::optional<std::pair<std::int64_t, std::int64_t>> version,
                  std::optional<std::pair<int, int>> device,
                  std::optional<bool> copy) {
  field.held()->fork().check();
  wait_for(field, stream);
  return dlpack_capsule(field, {.major_version = version ? version->first : 0,
                                .copy = copy.value_or(false),
                                .device = device});
}

std::string repr_of(const Field& field) {
  return "<penstock.Field '" + printable(field.name()) + "' " +
         std::string(name_of(field.view().dtype)) + " " +
         text_of(field.view().shape) + ">";
}

std::int64_t rows_of(const Field& field) { return field.view().shape.at(0); }

constexpr const char* kUseTensors =
    "open the loader with format=\"torch\", whose batches hold tensors, or "
    "convert this one: field.torch()";

/// torch calls this where a Field is passed in place of a tensor. torch's own
/// ways to make a tensor of it (as_tensor, from_dlpack) do not come here.
[[noreturn]] nb::object refuse_torch(nb::handle function, nb::args,
                                     nb::kwargs) {
  nb::object name =
      nb::getattr(function, "__name__", nb::str("a function of torch"));
  std::string text = "torch: " + nb::cast<std::string>(name) +
                     " takes tensors and got a penstock.Field; " + kUseTensors;
  throw nb::type_error(text.c_str());
}

/// Of "tensor + field" torch answers that it does not know the operand.
[[noreturn]] nb::object refuse_operand(const Field& field, nb::handle) {
  std::string text = "'" + printable(field.name()) +
                     "' is a penstock.Field and not a tensor; " + kUseTensors;
  throw nb::type_error(text.c_str());
}

/// Names that are not those of the class: mostly those of a tensor.
[[noreturn]] nb::object refuse_attribute(const Field& field,
                                         const std::string& name) {
  std::string text = "a penstock.Field has no attribute '" + name + "' ('" +
                     printable(field.name()) + "' is not a tensor); " +
                     kUseTensors;
  throw nb::attribute_error(text.c_str());
}

}  // namespace

void bind_field(nb::module_& module) {
  nb::class_<Field> made(
      module, "Field",
      "One tensor of a batch. numpy, torch and JAX take it "
      "without a copy, by DLPack; whatever is made of it keeps "
      "the batch's memory until it is gone.");
  for (const char* operation :
       {"__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rmatmul__"})
    made.def(operation, &refuse_operand, nb::arg("other"));
  made.def_prop_ro("name", &Field::name, "Its name in the batch.")
      .def_prop_ro("shape", &shape_of,
                   nb::sig("def shape(self) -> tuple[int, ...]"),
                   "Extents, the batch's rows first.")
      .def_prop_ro(
          "dtype",
          [](const Field& f) { return std::string(name_of(f.view().dtype)); },
          "As numpy and torch name it: 'float32', 'int64', 'bool'...")
      .def_prop_ro(
          "ndim", [](const Field& f) { return f.view().shape.size(); },
          "Number of dimensions.")
      .def_prop_ro(
          "nbytes", [](const Field& f) { return f.view().bytes(); },
          "Size in bytes.")
      .def("__len__", &rows_of)
      .def("__repr__", &repr_of)
      .def_static("__torch_function__", &refuse_torch,
                  nb::sig("def __torch_function__(func: typing.Any, *args: "
                          "typing.Any, **kwargs: typing.Any) -> typing.Any"))
      .def("__getattr__", &refuse_attribute, nb::arg("name"),
           nb::sig("def __getattr__(self, name: str) -> typing.Any"))
      .def_prop_ro(
          "__array_interface__", &array_interface,
          nb::sig("def __array_interface__(self) -> dict[str, object]"))
      .def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, "
                   "max_version: tuple[int, int] | None = None, dl_device: "
                   "tuple[int, int] | None = None, copy: bool | None = None) "
                   "-> object"),
           "A DLPack capsule, as the array API standard describes it. Raises "
           "BufferError for another device than the field's own.")
      .def("__dlpack_device__", &dlpack_device,
           "(1, 0) is the host's memory, (2, n) the n-th CUDA device.")
      .def("numpy", &to_numpy,
           nb::sig("def numpy(self) -> numpy.typing.NDArray[typing.Any]"),
           "A numpy array on the same memory.")
      .def("torch", &to_torch, nb::sig("def torch(self) -> typing.Any"),
           "A torch tensor on the same memory.")
      .def("jax", &to_jax, nb::sig("def jax(self) -> typing.Any"),
           "A JAX array, on the same memory where JAX can use it.")
      .def("to", &to_device, nb::arg("device"),
           nb::sig("def to(self, device: typing.Any) -> typing.Any"),
           "A torch tensor on `device`.");
}

}  // namespace penstock::python
