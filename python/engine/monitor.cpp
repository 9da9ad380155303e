#include "python/engine/monitor.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <array>

#include "penstock/exec/exec.h"
#include "penstock/monitor/monitor.h"
#include "penstock/report/report.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

void bind_traces(nb::module_& module) {
  nb::class_<Trace>(module, "Trace",
                    "What threads and the device do, piece by piece.")
      .def("__init__", [](Trace* made) { new (made) Trace(); })
      .def("end", &Trace::end)
      .def("write",
           [](const Trace& trace, const std::string& file) {
             GilRelease meanwhile;
             trace.write(file);
           })
      .def("kept", &Trace::kept)
      .def("text", &Trace::text);
  module.def(
      "loop_did",
      [](std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
         std::int64_t step) {
        spans::tell({.lane = SpanLane::loop,
                     .name = name,
                     .begin = Nanoseconds(begin_ns),
                     .end = Nanoseconds(end_ns),
                     .step = step});
      },
      nb::arg("name"), nb::arg("begin_ns"), nb::arg("end_ns"), nb::arg("step"),
      "Tells traces of a piece of work of a loop in Python, by the monotonic "
      "clock.");
  module.def("is_traced", &spans::heard);
}

void bind_thread_sampler(nb::module_& module) {
  nb::class_<ThreadSampler>(module, "ThreadSampler",
                            "Looks at what threads do while they work.")
      .def("__init__", [](ThreadSampler* made) { new (made) ThreadSampler(); })
      .def("begin", &ThreadSampler::begin)
      .def("end", &ThreadSampler::end)
      .def("take", [](ThreadSampler& sampler) {
        const ThreadSightings seen = sampler.take();
        return std::array<std::int64_t, 8>{
            seen.running,    seen.in_lock, seen.in_own_lock, seen.in_file,
            seen.in_network, seen.asleep,  seen.other,       seen.looks};
      });
}

}  // namespace

void bind_monitor(nb::module_& module) {
  nb::class_<MachineSeries>(module, "MachineSeries",
                            "What a machine and a process do over time.")
      .def(
          "__init__",
          [](MachineSeries* made, std::optional<int> pid,
             const std::string& gpus) {
            new (made) MachineSeries({.process = pid, .gpus = gpus});
          },
          nb::arg("pid").none(), nb::arg("gpus"))
      .def("sample",
           [](MachineSeries& series) { return series.sample().dump(); })
      .def("summary",
           [](const MachineSeries& series) { return series.summary().dump(); });
  nb::class_<GpuSensor>(module, "GpuSensor",
                        "The GPU at a place on the bus, by its driver.")
      .def(
          "__init__",
          [](GpuSensor* made, const std::string& pci_bus_id) {
            new (made) GpuSensor(pci_bus_id, nvml_of_this_machine());
          },
          nb::arg("pci_bus_id"))
      .def("utilisation",
           [](GpuSensor& sensor) { return sensor.read().utilisation; });
  module.def(
      "report_page",
      [](const std::string& report) {
        return report_html(Json::parse(report, "the report"));
      },
      nb::arg("report"), "The page of a run, of its report as JSON.");
  module.def(
      "waits_for_process",
      [](std::string_view line) {  // no read: a socket or not is the same
        return what_line_says(line, [](int) { return false; }) ==
               ThreadDoes::in_lock;
      },
      nb::arg("line"));
  bind_traces(module);
  bind_thread_sampler(module);
}

}  // namespace penstock::python
