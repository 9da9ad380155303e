#include "python/engine/batches.h"

#include "python/engine/gc_slots.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

bool has_torch() {
  PythonCallScope call;
  nb::object modules = nb::module_::import_("sys").attr("modules");
  return nb::cast<nb::dict>(modules).contains("torch");
}

nb::object length_hint(const Batches& batches) {
  if (std::optional<std::int64_t> left = batches.left()) return nb::int_(*left);
  return nb::borrow(Py_NotImplemented);
}

}  // namespace

Batches Batches::epoch(nb::handle_t<Engine> engine, nb::object watch,
                       nb::object format) {
  auto* of = nb::inst_ptr<Engine>(engine);
  std::int64_t iteration = of->begin_epoch();
  return {engine, std::move(watch), std::move(format), iteration,
          of->steps_left()};
}

Batches Batches::here(nb::handle_t<Engine> engine,
                      std::optional<std::int64_t> steps, nb::object watch,
                      nb::object format) {
  std::int64_t iteration = nb::inst_ptr<Engine>(engine)->begin_here();
  return {engine, std::move(watch), std::move(format), iteration,
          steps.value_or(-1)};
}

Batches Batches::into(nb::handle_t<Engine> engine,
                      nb::typed<nb::dict, nb::str, nb::any> tensors,
                      std::optional<std::int64_t> steps, nb::object watch) {
  auto* of = nb::inst_ptr<Engine>(engine);
  std::vector<NamedArray> arrays;
  for (const std::string& name : of->tensor_names()) {
    if (!tensors.contains(name.c_str()))
      throw Error(ErrorKind::request,
                  {.code = "loader.next_into",
                   .what = "cannot write batches into these tensors",
                   .where = "tensor '" + name + "'",
                   .why = "there is no tensor of this name",
                   .next = "pass one tensor for each tensor of a batch"});
    arrays.push_back(writable_array(name, tensors[name.c_str()]));
  }
  Batches batches = steps ? here(engine, steps, std::move(watch), nb::none())
                          : epoch(engine, std::move(watch), nb::none());
  for (const NamedArray& array : arrays) batches.views_.push_back(array.view);
  batches.into_ = std::move(arrays);
  return batches;
}

Batches::Taken Batches::take(Engine& engine) {
  if (into_.empty()) {
    NamedBatch batch = engine.next(iteration_);
    const Batch& held = batch.held().batch();
    Taken taken{.at = held.at(), .rows = held.rows()};
    taken.given = nb::cast(std::move(batch));
    return taken;
  }
  FilledBatch batch = engine.next_into(iteration_, views_);
  return {nb::int_(batch.rows), batch.at, batch.rows};
}

template <class... Values>
void Batches::call_watch(const char* what, Values... values) {
  PythonCallScope call;
  watch_.attr(what)(values...);
}

namespace {

void check_signals() {
  PythonCallScope call;  // their handlers
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

nb::object Batches::next() {
  if (!engine_.is_valid()) throw nb::stop_iteration();
  auto* engine = nb::inst_ptr<Engine>(engine_);
  watched_ = watched_ || has_torch();
  if (left_ == 0) {
    if (watched_) call_watch("rests");
    engine->pause(iteration_);
    throw nb::stop_iteration();
  }
  if (watched_) call_watch("asks");
  // Counted before other threads run: one of them may be the next to ask.
  bool counts = left_ > 0;
  if (counts) --left_;
  try {
    Taken taken = take(*engine);
    try {
      // What came while other threads ran is raised before the batch is given.
      check_signals();
      if (watched_) call_watch("got", taken.at.epoch, taken.rows);
      if (!format_.is_none()) {
        PythonCallScope call;
        taken.given = format_(taken.given);
      }
    } catch (...) {
      counts &= engine->put_back(taken.at);
      throw;
    }
    return std::move(taken.given);
  } catch (...) {
    if (counts) ++left_;
    throw;
  }
}

std::optional<std::int64_t> Batches::left() const {
  if (left_ < 0) return std::nullopt;
  return left_;
}

int Batches::visit(visitproc visit, void* arg) const {
  Py_VISIT(engine_.ptr());
  Py_VISIT(watch_.ptr());
  Py_VISIT(format_.ptr());
  return 0;
}

void Batches::clear() {
  nb::object engine = std::move(engine_), watch = std::move(watch_),
             format = std::move(format_);
}

void bind_batches(nb::module_& module) {
  static PyType_Slot slots[] = {
      {Py_tp_traverse, slot(tp_traverse<Batches>)},
      {Py_tp_clear, slot(tp_clear<Batches>)},
      {0, nullptr},
  };
  nb::class_<Batches>(module, "Batches", "Batches, one after the other.",
                      nb::type_slots(slots))
      .def(
          "__iter__", [](nb::handle self) { return self; },
          nb::sig("def __iter__(self) -> Batches"))
      .def("__length_hint__", &length_hint,
           nb::sig("def __length_hint__(self) -> int"))
      .def("explain", &Batches::explain, nb::sig("def explain(self) -> object"),
           "What limits the loop, as the loader's `explain()` gives it.")
      .def("__next__", &Batches::next, nb::sig("def __next__(self) -> object"));
}

}  // namespace penstock::python
