#include "penstock/frontends/python/rows.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "penstock/base/dlpack.h"
#include "penstock/frontends/python/waiting.h"

namespace penstock::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using NumpyArray = nb::ndarray<nb::numpy>;

[[noreturn]] void refuse_array(const std::string& name, std::string why,
                               std::string next) {
  throw Error(ErrorKind::request, {.code = "arrays.array",
                                   .what = "cannot make rows of the arrays",
                                   .where = "'" + name + "'",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

NamedArray named_array(const std::string& name, nb::handle object) {
  AnyArray array;
  if (!nb::try_cast(object, array))
    refuse_array(name,
                 "found " + std::string(nb::type_name(object.type()).c_str()) +
                     ", expected an array in host memory and in C order",
                 "give it as numpy.ascontiguousarray(...)");
  nb::dlpack::dtype type = array.dtype();
  TensorView view;
  if (type.lanes != 1 || !dtype_from(DlType{type.code, type.bits}, view.dtype))
    refuse_array(name, "its elements are of a type that no tensor has",
                 "convert it, for example to float32");
  for (std::size_t i = 0; i < array.ndim(); ++i)
    view.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  view.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  return {name, view, {new AnyArray(array), [](const AnyArray* kept) {
                         if (!Py_IsInitialized()) return;
                         nb::gil_scoped_acquire lock;
                         delete kept;
                       }}};
}

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

/// What a call raised, as an error that keeps it.
Error error_of(const nb::python_error& raised) {
  nb::handle value = raised.value();
  auto text = [&](const char* part) {
    nb::object found = nb::getattr(value, part, nb::none());
    std::string said;
    return nb::try_cast(found, said) ? said : std::string();
  };
  std::string kind = text("kind");
  ErrorKind known = ErrorKind::transform;
  for (ErrorKind each : {ErrorKind::request, ErrorKind::source})
    if (kind == name_of(each)) known = each;
  std::string why = text("why");
  return Error(known, {.code = kind.empty() ? "python.raised" : text("code"),
                       .what = kind.empty() ? "a call to Python ended badly"
                                            : text("what"),
                       .where = text("where"),
                       .why = why.empty() ? raised.what() : why,
                       .next = text("next")})
      .caused_by(shared(value));
}

}  // namespace

std::shared_ptr<PyObject> shared(nb::handle object) {
  return {object.inc_ref().ptr(), [](PyObject* held) {
            if (!Py_IsInitialized()) return;
            nb::gil_scoped_acquire lock;
            Py_DECREF(held);
          }};
}

RowsMaker rows_of_arrays(const std::vector<std::string>& names,
                         const std::vector<nb::object>& arrays) {
  auto named = std::make_shared<std::vector<NamedArray>>();
  for (std::size_t i = 0; i < names.size(); ++i)
    named->push_back(named_array(names[i], arrays[i]));
  layout_of(*named);  // refuses here what can be refused
  return [named](const Job& job, Device& device, const std::atomic<bool>*) {
    std::int64_t rows = named->front().view.shape[0];
    ArrayOptions options{
        .cache = job.loading.cache,
        .ring_bytes =
            ring_bytes(loader_options(job, Side::train), layout_of(*named))};
    if (job.split.train < 1) {
      options.train.emplace();
      options.val.emplace();
      for (std::int64_t row = 0; row < rows; ++row) {
        Side side = side_of(job.split, std::to_string(row));
        if (side == Side::train) options.train->push_back(row);
        if (side == Side::val) options.val->push_back(row);
      }
    }
    return std::make_shared<ArrayRows>(*named, options, device);
  };
}

RowsMaker rows_of_function(std::int64_t count, RowFunction function) {
  return [count, function](const Job&, Device&, const std::atomic<bool>*) {
    return std::make_shared<MadeRows>(count, function);
  };
}

RowFunction function_of(nb::object call, const std::vector<MadeTensor>& tensors,
                        std::string fingerprint, bool whole_batches) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, dtype, shape] : tensors) {
    TensorSpec spec{.name = name,
                    .row_shape = Shape(shape.begin(), shape.end())};
    PENSTOCK_ASSERT(dtype_from(dtype, spec.dtype), "a type that we know");
    specs.push_back(std::move(spec));
  }
  std::shared_ptr<PyObject> kept = shared(call);
  return {.layout = layout_of_tensors(std::move(specs)),
          .fingerprint = std::move(fingerprint),
          .whole_batches = whole_batches,
          .call = [kept](const RowCall& rows) {
            nb::gil_scoped_acquire lock;
            try {
              TensorView ids{.data = reinterpret_cast<std::byte*>(
                                 const_cast<SampleId*>(rows.ids.data())),
                             .dtype = Dtype::int64,
                             .shape = {std::ssize(rows.ids)}};
              nb::object inputs =
                  numpy_views(rows.in, owner_of(rows.in_memory));
              nb::handle(kept.get())(numpy_view(ids, {}), inputs,
                                     numpy_views(rows.out, {}), rows.at.epoch,
                                     rows.at.step);
            } catch (const nb::python_error& raised) {
              throw error_of(raised);
            }
          }};
}

nb::object raised_in_python(const Error& error) {
  auto* object = static_cast<const PyObject*>(error.cause().get());
  if (object == nullptr) return {};
  return nb::borrow(const_cast<PyObject*>(object));
}

bool asks_for_an_end(nb::handle exception) {
  return PyObject_IsInstance(exception.ptr(), PyExc_Exception) == 0;
}

void bind_rows(nb::module_& module) {
  nb::class_<RowsMaker>(module, "Rows", "Rows that are no job's source.");
  module.def("array_rows", &rows_of_arrays, nb::arg("names"),
             nb::arg("arrays"));
  module.def(
      "function_rows",
      [](std::int64_t count, nb::object call, std::vector<MadeTensor> tensors,
         std::string fingerprint) {
        return rows_of_function(
            count, function_of(std::move(call), tensors, std::move(fingerprint),
                               false));
      },
      nb::arg("count"), nb::arg("call"), nb::arg("tensors"),
      nb::arg("fingerprint"));
}

}  // namespace penstock::python
