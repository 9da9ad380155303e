#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "python/engine/batches.h"
#include "python/engine/engine.h"
#include "python/engine/gc_slots.h"
#include "python/engine/json_object.h"

namespace penstock::python {
namespace {

using EngineClass = nb::class_<Engine>;

void bind_batches_of(EngineClass& engine) {
  engine
      .def("epoch", &Batches::epoch, nb::arg("watch"),
           nb::arg("format") = nb::none())
      .def("batches", &Batches::here, nb::arg("steps").none(), nb::arg("watch"),
           nb::arg("format") = nb::none())
      .def("into", &Batches::into, nb::arg("tensors"), nb::arg("steps").none(),
           nb::arg("watch"))
      .def("tensor_names", &Engine::tensor_names)
      .def("peek", &Engine::peek)
      .def(
          "map",
          [](Engine& engine, nb::object call, std::vector<MadeTensor> tensors,
             std::string fingerprint, bool whole_batches) {
            auto function = std::make_shared<Function>(std::move(call));
            engine.map(function,
                       row_function(function, tensors, std::move(fingerprint),
                                    whole_batches));
          },
          nb::arg("call"), nb::arg("tensors"), nb::arg("fingerprint"),
          nb::arg("whole_batches"));
}

void bind_state(EngineClass& engine) {
  engine.def_prop_ro("seed", &Engine::seed)
      .def("set_epoch", &Engine::set_epoch, nb::arg("epoch"))
      .def("steps_per_epoch", &Engine::steps_per_epoch)
      .def("row_names", &Engine::row_names)
      .def("state", &Engine::state)
      .def("load_state", &Engine::load_state, nb::arg("state"))
      .def("report", &Engine::report, nb::arg("wait"))
      .def("release_memory", &Engine::release_memory, nb::arg("bytes"))
      .def("statistics",
           [](Engine& self) { return object_of(self.statistics()); })
      .def(
          "classes",
          [](Engine& self, const std::string& field) {
            return object_of(self.classes(field));
          },
          nb::arg("field"))
      .def("rank_facts", &Engine::rank_facts)
      .def("close", &Engine::close)
      .def("closed", &Engine::closed)
      .def("__del__", &Engine::before_it_is_garbage);
}

void bind_steps(EngineClass& engine) {
  engine.def("begin_step", &Engine::begin_step)
      .def("end_step", &Engine::end_step)
      .def("time_elsewhere", &Engine::time_elsewhere, nb::arg("elsewhere"),
           nb::arg("gpu") = "")
      .def("add_step", &Engine::add_step, nb::arg("epoch"), nb::arg("rows"),
           nb::arg("wall"), nb::arg("compute"), nb::arg("wait_data"),
           nb::arg("drained"),
           "Nanoseconds of a step that the caller has timed.")
      .def_prop_ro("device", &Engine::device)
      .def("begin_line", &Engine::begin_line, nb::arg("epochs"),
           nb::arg("steps"))
      .def("line", &Engine::line, nb::arg("columns"))
      .def("shares", &Engine::shares);
}

void bind_open(nb::module_& module) {
  module.def(
      "open",
      [](std::string job, std::vector<std::string> sets, std::string side,
         int rank, int world, OwnRows* rows, bool agrees_later) {
        // They are the engine's from here on: one holder alone shows them to
        // the garbage collector.
        return std::make_unique<Engine>(OpenRequest{
            std::move(job), std::move(sets), std::move(side), rank, world,
            agrees_later,
            rows != nullptr ? std::exchange(*rows, {}) : OwnRows()});
      },
      nb::arg("job"), nb::arg("sets"), nb::arg("side"), nb::arg("rank"),
      nb::arg("world"), nb::arg("rows").none(), nb::arg("agrees_later"));
}

}  // namespace

void bind_engine(nb::module_& module) {
  // No tp_clear: what there was to clear is gone after __del__.
  static PyType_Slot slots[] = {
      {Py_tp_traverse, slot(tp_traverse<Engine>)},
      {0, nullptr},
  };
  EngineClass engine(module, "Engine",
                     "What penstock.Loader is made of; settings are JSON.",
                     nb::is_weak_referenceable(), nb::type_slots(slots));
  bind_batches_of(engine);
  bind_state(engine);
  bind_steps(engine);
  bind_open(module);
  module.def("source_section", &source_section, nb::arg("uri"));
  module.def("job_schema", &job_schema);
}

}  // namespace penstock::python
