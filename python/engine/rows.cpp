#include "python/engine/rows.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "penstock/base/dlpack.h"
#include "penstock/dataset/dataset.h"
#include "python/engine/gc_slots.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

[[noreturn]] void refuse_array(const std::string& name, std::string why,
                               std::string next) {
  throw Error(ErrorKind::request, {.code = "arrays.array",
                                   .what = "cannot make rows from the arrays",
                                   .where = "'" + name + "'",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

template <class AnyArray>
NamedArray named(const std::string& name, nb::handle object,
                 const char* expected) {
  AnyArray array;
  if (!nb::try_cast(object, array))
    refuse_array(name,
                 "found " + std::string(nb::type_name(object.type()).c_str()) +
                     ", expected " + expected,
                 "pass numpy.ascontiguousarray(...)");
  nb::dlpack::dtype type = array.dtype();
  TensorView view;
  if (type.lanes != 1 || !dtype_from(DlType{type.code, type.bits}, view.dtype))
    refuse_array(name, "its elements have a type that tensors cannot have",
                 "convert the array, for example to float32");
  for (std::size_t i = 0; i < array.ndim(); ++i)
    view.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  view.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  return {name, view, {new AnyArray(array), [](const AnyArray* kept) {
                         if (!Py_IsInitialized()) return;
                         GilAcquire lock;
                         delete kept;
                       }}};
}

NamedArray named_array(const std::string& name, nb::handle object) {
  return named<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(
      name, object, "an array in host memory and in C order");
}

}  // namespace

NamedArray writable_array(const std::string& name, nb::handle object) {
  return named<nb::ndarray<nb::c_contig, nb::device::cpu>>(
      name, object, "a writable array in host memory and in C order");
}

namespace {

/// The rows of each side of a split, by number; not given where all are train.
RowSides sides_of(const Split& split, std::int64_t rows) {
  RowSides sides;
  if (split.whole()) return sides;
  std::vector<std::byte> of_row;
  for (std::int64_t row = 0; row < rows; ++row)
    of_row.push_back(
        static_cast<std::byte>(side_of(split, std::to_string(row))));
  keep_most(split, of_row);
  sides.train.emplace();
  sides.val.emplace();
  sides.test.emplace();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto side = static_cast<Side>(of_row[static_cast<std::size_t>(row)]);
    if (side == Side::train) sides.train->push_back(row);
    if (side == Side::val) sides.val->push_back(row);
    if (side == Side::test) sides.test->push_back(row);
  }
  return sides;
}

}  // namespace

OwnRows rows_of_arrays(const std::vector<std::string>& names,
                       const std::vector<nb::object>& arrays,
                       nb::object drawn_by) {
  auto named = std::make_shared<std::vector<NamedArray>>();
  for (std::size_t i = 0; i < names.size(); ++i)
    named->push_back(named_array(names[i], arrays[i]));
  layout_of(*named);  // refuses here what can be refused
  std::optional<NamedArray> weights;
  if (!drawn_by.is_none()) weights = named_array("weights", drawn_by);
  return {
      .maker = [named, weights](const Job& job, Device& device,
                                StopFlag) -> std::shared_ptr<const Dataset> {
        std::int64_t rows = named->front().view.shape[0];
        ArrayDatasetOptions options{
            .cache = job.loading.cache,
            .ring_bytes = ring_bytes(
                loader_options(job, Side::train),
                {.rows = rows, .outputs = outputs_of(layout_of(*named))}),
            .budgets = job.loading.budgets};
        options.drawing = job.loading.drawing;
        options.drawn_by = weights;
        if (weights) options.drawn_by->name = job.loading.drawing.column;
        RowSides sides = sides_of(job.split, rows);
        options.train = std::move(sides.train);
        options.val = std::move(sides.val);
        options.test = std::move(sides.test);
        return std::make_shared<ArrayDataset>(*named, options, device);
      }};
}

RowFunction row_function(std::shared_ptr<Function> function,
                         const std::vector<MadeTensor>& tensors,
                         std::string fingerprint, bool whole_batches) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, dtype, shape] : tensors) {
    TensorSpec spec{.name = name,
                    .row_shape = Shape(shape.begin(), shape.end())};
    PENSTOCK_ASSERT(dtype_from(dtype, spec.dtype), "a type that we know");
    specs.push_back(std::move(spec));
  }
  return {.layout = layout_of_tensors(std::move(specs)),
          .fingerprint = std::move(fingerprint),
          .whole_batches = whole_batches,
          .call = [function = std::move(function)](const RowCall& rows) {
            function->make_rows(rows);
          }};
}

namespace {

/// Settings that need what rows hold before they are read, or keep them.
void check_settings_of_function(const Job& job) {
  auto refuse = [](const char* setting, std::string next) {
    throw Error(ErrorKind::request,
                {.code = "source.setting",
                 .what = "cannot use a setting for these rows",
                 .where = setting,
                 .why = "the rows are made by an object with 'size' and "
                        "'read', again in every epoch",
                 .next = std::move(next)});
  };
  const Drawing& drawing = job.loading.drawing;
  if (drawing)
    refuse(drawing.balance ? "loader.balance" : "loader.weights",
           "give the object 'columns', a length and 'read(positions)', whose "
           "columns can be used this way, or leave the setting out");
  const std::string& cache = job.loading.cache;
  if ((cache != "auto" && cache != "none") || job.loading.budgets.any())
    refuse("loader.cache",
           "set it to \"auto\" or \"none\", or give the object 'columns', a "
           "length and 'read(positions)', whose rows can be kept");
}

}  // namespace

OwnRows rows_of_function(std::int64_t count, nb::object call,
                         const std::vector<MadeTensor>& tensors,
                         std::string fingerprint) {
  auto function = std::make_shared<Function>(std::move(call));
  RowFunction rows =
      row_function(function, tensors, std::move(fingerprint), false);
  return {.maker = [count, rows](const Job& job, Device&,
                                 StopFlag) -> std::shared_ptr<const Dataset> {
            check_settings_of_function(job);
            return std::make_shared<FunctionDataset>(
                count, rows, sides_of(job.split, count));
          },
          .function = std::move(function)};
}

int OwnRows::visit(visitproc visit, void* arg) const {
  return function == nullptr ? 0 : function->visit(visit, arg);
}

void OwnRows::clear() { OwnRows last = std::exchange(*this, {}); }

void bind_rows(nb::module_& module) {
  static PyType_Slot slots[] = {
      {Py_tp_traverse, slot(tp_traverse<OwnRows>)},
      {Py_tp_clear, slot(tp_clear<OwnRows>)},
      {0, nullptr},
  };
  nb::class_<OwnRows>(module, "Rows",
                      "Rows that are no job's source, for one loader.",
                      nb::type_slots(slots))
      .def_prop_ro("has_fields",
                   [](const OwnRows& rows) { return rows.schema.has_value(); });
  module.def("array_rows", &rows_of_arrays, nb::arg("names"), nb::arg("arrays"),
             nb::arg("drawn_by").none() = nb::none());
  module.def("function_rows", &rows_of_function, nb::arg("count"),
             nb::arg("call"), nb::arg("tensors"), nb::arg("fingerprint"));
}

}  // namespace penstock::python
