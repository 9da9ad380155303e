#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "penstock/base/printable.h"
#include "python/engine/batch.h"
#include "python/engine/convert.h"
#include "python/engine/file_text.h"
#include "python/engine/function.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

nb::object at(const NamedBatch& batch, nb::handle key) {
  batch.held().fork().check();
  if (PyUnicode_Check(key.ptr())) {
    auto name = nb::cast<std::string>(key);
    if (const NamedTensor* tensor = batch.find(name))
      return nb::cast(batch.field(*tensor));
    std::vector<std::string> names = batch.names();
    std::string text =
        "the batch has no field '" + name + "'; " + did_you_mean(name, names);
    throw nb::key_error(text.c_str());
  }
  std::int64_t place = 0;
  if (!nb::try_cast(key, place))
    throw nb::type_error("a field is named by a text or by its position");
  auto size = static_cast<std::int64_t>(batch.size());
  if (place < 0) place += size;
  if (place < 0 || place >= size)
    throw nb::index_error("the batch has fewer fields");
  return nb::cast(batch.field(static_cast<std::size_t>(place)));
}

nb::object attribute(const NamedBatch& batch, const std::string& name) {
  batch.held().fork().check();
  if (const NamedTensor* tensor = batch.find(name))
    return nb::cast(batch.field(*tensor));
  std::vector<std::string> names = batch.names();
  std::string text = "the batch has no field or attribute '" + name + "'; " +
                     did_you_mean(name, names);
  throw nb::attribute_error(text.c_str());
}

/// Those of the class, and the fields: what a shell completes.
nb::list attributes_of(nb::handle_t<NamedBatch> self) {
  nb::list names(
      nb::module_::import_("builtins").attr("object").attr("__dir__")(self));
  for (const std::string& name : nb::cast<const NamedBatch&>(self).names())
    names.append(name);
  return names;
}

nb::list fields_of(const NamedBatch& batch) {
  batch.held().fork().check();
  nb::list fields;
  for (std::size_t i = 0; i < batch.size(); ++i)
    fields.append(nb::cast(batch.field(i)));
  return fields;
}

nb::list items_of(const NamedBatch& batch) {
  batch.held().fork().check();
  nb::list items;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Field field = batch.field(i);
    items.append(nb::make_tuple(field.name(), field));
  }
  return items;
}

/// A dict of what `convert` makes of each field.
template <class Convert>
nb::dict converted(const NamedBatch& batch, Convert convert) {
  batch.held().fork().check();
  nb::dict made;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Field field = batch.field(i);
    made[field.name().c_str()] = convert(field);
  }
  return made;
}

nb::object ids_of(const NamedBatch& batch) {
  batch.held().fork().check();
  return numpy_copy(batch.held().batch().ids());
}

/// None for padding.
nb::object python_key(const Dataset& rows, SampleId id) {
  Json key = key_of(rows, id);
  if (key.is_null()) return nb::none();
  if (!key.is_string()) return nb::cast(key.integer());
  return file_text(key.string());
}

nb::list row_keys_of(const NamedBatch& batch) {
  batch.held().fork().check();
  nb::list made;
  std::shared_ptr<const Dataset> rows = batch.held().loader().opened();
  for (SampleId id : batch.held().batch().ids())
    made.append(python_key(*rows, id));
  return made;
}

nb::list rejected_of(const NamedBatch& batch) {
  batch.held().fork().check();
  nb::list made;
  std::shared_ptr<const Dataset> rows = batch.held().loader().opened();
  for (const RejectedSample& bad : batch.held().batch().rejected()) {
    nb::dict entry;
    entry["row"] = bad.row;
    entry["key"] = python_key(*rows, bad.sample);
    entry["column"] = file_text(bad.place);
    entry["why"] = message_text(bad.why);
    entry["substitute"] = python_key(*rows, bad.substitute);
    made.append(std::move(entry));
  }
  return made;
}

/// The texts of a field of packed bytes.
nb::list texts_of(const NamedBatch& batch, const std::string& name) {
  batch.held().fork().check();
  const NamedTensor* bytes = batch.find(name);
  const NamedTensor* ends = batch.find(name + "_cu_seqlens");
  if (bytes == nullptr || ends == nullptr ||
      bytes->view.dtype != Dtype::uint8 || bytes->view.shape.size() != 1) {
    std::string text = "the batch has no texts '" + name +
                       "': name a field of the kind \"text\"";
    throw nb::key_error(text.c_str());
  }
  const nb::bytes all(to_host(batch.field(*bytes)).attr("tobytes")());
  const auto offsets = nb::cast<std::vector<std::int64_t>>(
      to_host(batch.field(*ends)).attr("tolist")());
  nb::list texts;
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    nb::object text = nb::steal(PyUnicode_DecodeUTF8(
        all.c_str() + offsets[row], offsets[row + 1] - offsets[row], "strict"));
    if (!text.is_valid()) throw nb::python_error();
    texts.append(std::move(text));
  }
  return texts;
}

std::string shown(const NamedBatch& batch) {
  std::string text = "<penstock.Batch epoch " +
                     std::to_string(batch.held().batch().at().epoch) +
                     " step " + std::to_string(batch.held().batch().at().step) +
                     ":";
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Field field = batch.field(i);
    text += (i == 0 ? " " : ", ") + printable(field.name()) + " " +
            std::string(name_of(field.view().dtype)) + " " +
            text_of(field.view().shape);
  }
  return text + ">";
}

[[noreturn]] nb::object refuse_to_pickle(const NamedBatch&, nb::args) {
  throw nb::type_error(
      "a batch is not pickled: it would copy every array; send the arrays of "
      "batch.numpy(), or open a loader in each process");
}

using BatchClass = nb::class_<NamedBatch>;

void bind_as_mapping(BatchClass& batch) {
  batch
      .def("__getitem__", &at, nb::arg("key"),
           nb::sig("def __getitem__(self, key: str | int) -> Field"),
           "The field of that name or place.")
      .def("__getattr__", &attribute, nb::arg("name"),
           nb::sig("def __getattr__(self, name: str) -> Field"))
      .def("__dir__", &attributes_of, nb::sig("def __dir__(self) -> list[str]"))
      .def("_ipython_key_completions_", &NamedBatch::names)
      .def("__len__", &NamedBatch::size, "Number of fields.")
      .def(
          "__iter__",
          [](const NamedBatch& self) {
            return nb::object(
                nb::steal(PyObject_GetIter(fields_of(self).ptr())));
          },
          nb::sig("def __iter__(self) -> typing.Iterator[Field]"))
      .def(
          "__contains__",
          [](const NamedBatch& self, nb::handle name) {
            return PyUnicode_Check(name.ptr()) &&
                   self.find(nb::cast<std::string>(name)) != nullptr;
          },
          nb::sig("def __contains__(self, name: object) -> bool"))
      .def("keys", &NamedBatch::names, "The names of the fields.")
      .def("values", &fields_of, nb::sig("def values(self) -> list[Field]"),
           "The fields.")
      .def("items", &items_of,
           nb::sig("def items(self) -> list[tuple[str, Field]]"),
           "Names and fields.")
      .def("__repr__", &shown)
      .def("__reduce_ex__", &refuse_to_pickle,
           nb::sig("def __reduce_ex__(self, *args: typing.Any) -> typing.Any"));
}

void bind_arrays(BatchClass& batch) {
  batch
      // Before "numpy", which hides the module from what follows in the stub.
      .def(
          "host", [](const NamedBatch& b) { return converted(b, to_host); },
          nb::sig("def host(self) -> dict[str, "
                  "numpy.typing.NDArray[typing.Any]]"),
          "name -> numpy array of its own in host memory: a copy, wherever the "
          "batch is.")
      .def(
          "numpy", [](const NamedBatch& b) { return converted(b, to_numpy); },
          nb::sig("def numpy(self) -> dict[str, "
                  "numpy.typing.NDArray[typing.Any]]"),
          "name -> numpy array, on the batch's own memory.")
      .def(
          "torch", [](const NamedBatch& b) { return converted(b, to_torch); },
          nb::sig("def torch(self) -> dict[str, typing.Any]"),
          "name -> torch tensor, on the batch's own memory.")
      .def(
          "jax", [](const NamedBatch& b) { return converted(b, to_jax); },
          nb::sig("def jax(self) -> dict[str, typing.Any]"),
          "name -> JAX array, on the batch's own memory where JAX can.")
      .def(
          "to",
          [](const NamedBatch& b, nb::handle device) {
            return converted(
                b, [&](const Field& f) { return to_device(f, device); });
          },
          nb::arg("device"),
          nb::sig("def to(self, device: typing.Any) -> dict[str, "
                  "typing.Any]"),
          "name -> torch tensor on `device`; without a copy where the batch "
          "is there already.");
}

void bind_facts(BatchClass& batch) {
  batch
      .def(
          "texts", &texts_of, nb::arg("name"),
          nb::sig("def texts(self, name: str) -> list[str]"),
          "The rows of a field of the kind \"text\", each a str, wherever "
          "the batch is; padding is empty. Raises UnicodeDecodeError for bytes "
          "that are not UTF-8.")
      .def_prop_ro("ids", &ids_of,
                   nb::sig("def ids(self) -> "
                           "numpy.typing.NDArray[numpy.int64]"),
                   "The samples' ids, int64 [rows]; -1 marks padding. A copy.")
      .def_prop_ro(
          "row_keys", &row_keys_of,
          nb::sig("def row_keys(self) -> list[int | str | None]"),
          "The rows' keys in the source, or their numbers where rows have no "
          "keys; of several sources \"1:KEY\", the source and the key within "
          "it. None marks padding. Raises "
          "RequestError when the loader was closed.")
      .def_prop_ro(
          "rejected", &rejected_of,
          nb::sig("def rejected(self) -> list[dict[str, int | str | None]]"),
          "What 'on_bad' masked or substituted, a dict for each: 'row' of this "
          "batch, 'key', 'column', 'why', and 'substitute', the key of the row "
          "in its place or None. Raises RequestError when the loader was "
          "closed.")
      .def_prop_ro(
          "rows", [](const NamedBatch& b) { return b.held().batch().rows(); },
          "Rows of this rank, padding included.")
      .def_prop_ro(
          "epoch",
          [](const NamedBatch& b) { return b.held().batch().at().epoch; },
          "The epoch, from 0.")
      .def_prop_ro(
          "step",
          [](const NamedBatch& b) { return b.held().batch().at().step; },
          "The step within the epoch, from 0.");
}

}  // namespace

void bind_batch(nb::module_& module) {
  BatchClass batch(
      module, "Batch",
      "One batch: names -> fields, in the order of the job's fields.\n\n"
      "`batch[\"x\"]` and `batch.x` are fields; `x, y = batch` unpacks them in "
      "order; `dict(batch)` works. Iterating gives fields, as with a tuple, "
      "not names.\n\nIts memory is used again once the batch, its fields and "
      "all arrays made of them are gone, and stays valid until then, even "
      "after the loader was closed.");
  bind_as_mapping(batch);
  bind_facts(batch);
  bind_arrays(batch);  // after all whose types are numpy's: it has `numpy`
}

}  // namespace penstock::python
