#include "python/engine/verdict.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "penstock/advisor/advisor.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

/// Running, in a lock, in one of its own process, in a file, the network,
/// asleep, elsewhere; looks.
using Sightings = std::array<std::int64_t, 8>;

ThreadSightings sightings_of(const Sightings& seen) {
  return {seen[0], seen[1], seen[2], seen[3],
          seen[4], seen[5], seen[6], seen[7]};
}

/// As a run's report has it.
std::string report_of(const FetchWindow& window) {
  Verdict verdict = diagnose(window);
  Json report;
  report["au"] = Json();
  report["parts"] = Json(Json::Object{});
  report["samples_per_s"] = Json();
  if (verdict.limit != Limit::unknown) {
    double share = window.wait_s / window.spent_s();
    report["au"] = 1 - share;
    report["parts"]["compute"] = 1 - share;
    report["parts"]["wait_data"] = share;
    report["samples_per_s"] =
        static_cast<double>(window.items) / window.spent_s();
    report["steps"] = window.batches;
    report["samples"] = window.items;
    report["first_batch_ms"] = 1e3 * window.first_batch_s;
  }
  report["verdict"] = verdict.json();
  return report.dump();
}

void bind_making(nb::module_& module) {
  using Making = FetchWindow::Making;
  nb::class_<Making>(module, "Making",
                     "How items were made and put together; seconds.")
      .def(nb::init<>())
      .def_rw("item_s", &Making::item_s)
      .def_rw("item_cpu_s", &Making::item_cpu_s)
      .def_rw("collate_s", &Making::collate_s)
      .def_rw("collate_cpu_s", &Making::collate_cpu_s)
      .def_rw("seconds", &Making::seconds)
      .def_rw("batch_seconds", &Making::batch_seconds)
      .def_rw("slowest", &Making::slowest)
      .def_rw("slowest_s", &Making::slowest_s)
      .def_rw("cpu_share", &Making::cpu_share)
      .def("add_seen", [](Making& making, const Sightings& seen) {
        making.seen += sightings_of(seen);
      });
}

/// What a FetchWindow is made of.
void bind_parts(nb::module_& module) {
  using Transfer = FetchWindow::Transfer;
  nb::class_<Transfer>(module, "Transfer",
                       "Seconds that moving a batch between processes takes.")
      .def(
          "__init__",
          [](Transfer* made, double worker_s, double loop_s,
             std::string why_not) {
            new (made) Transfer{worker_s, loop_s, std::move(why_not)};
          },
          nb::arg("worker_s"), nb::arg("loop_s"), nb::arg("why_not"));
  using Looked = FetchWindow::Looked;
  nb::class_<Looked>(module, "Looked",
                     "How the makers of batches spend their time, by looks.")
      .def(
          "__init__",
          [](Looked* made, double seconds, double ran_s, double queued_s,
             std::int64_t looks, std::int64_t in_lock) {
            new (made) Looked{seconds, ran_s, queued_s, looks, in_lock};
          },
          nb::arg("seconds"), nb::arg("ran_s"), nb::arg("queued_s"),
          nb::arg("looks"), nb::arg("in_lock"));
  using Copies = FetchWindow::Copies;
  nb::class_<Copies>(module, "Copies",
                     "Seconds of a batch's copy to a GPU, both ways.")
      .def(
          "__init__",
          [](Copies* made, double pageable_s, double pinned_s) {
            new (made) Copies{pageable_s, pinned_s};
          },
          nb::arg("pageable_s"), nb::arg("pinned_s"));
  bind_making(module);
}

bool seen_in_lock(const Sightings& seen) {
  FetchWindow window;
  window.making = FetchWindow::Making{.seen = sightings_of(seen)};
  return waits_in_lock(window);
}

double in_order(const std::vector<double>& batch_s, int workers, int depth,
                double loop_s, std::int64_t epoch) {
  return seconds_in_order({.batch_s = batch_s,
                           .workers = workers,
                           .depth = depth,
                           .loop_s = loop_s,
                           .epoch = epoch});
}

}  // namespace

void bind_verdict(nb::module_& module) {
  bind_parts(module);
  nb::class_<FetchWindow>(module, "FetchWindow",
                          "What was counted of a loop; times are seconds.")
      .def(nb::init<>())
      .def_rw("batches", &FetchWindow::batches)
      .def_rw("items", &FetchWindow::items)
      .def_rw("first_batch_s", &FetchWindow::first_batch_s)
      .def_rw("wait_s", &FetchWindow::wait_s)
      .def_rw("host_wait_s", &FetchWindow::host_wait_s)
      .def_rw("loop_s", &FetchWindow::loop_s)
      .def_rw("blocked_s", &FetchWindow::blocked_s, nb::arg("seconds").none())
      .def_rw("cpu_s", &FetchWindow::cpu_s)
      .def_rw("workers", &FetchWindow::workers)
      .def_rw("has_workers", &FetchWindow::has_workers)
      .def_rw("iterable", &FetchWindow::iterable)
      .def_rw("threads", &FetchWindow::threads)
      .def_rw("prefetch", &FetchWindow::prefetch)
      .def_rw("epoch_batches", &FetchWindow::epoch_batches)
      .def_rw("worker_items", &FetchWindow::worker_items)
      .def_rw("worker_s", &FetchWindow::worker_s)
      .def_rw("worker_cpu_s", &FetchWindow::worker_cpu_s)
      .def_rw("looked", &FetchWindow::looked, nb::arg("looked").none())
      .def_rw("transfer", &FetchWindow::transfer, nb::arg("transfer").none())
      .def_rw("making", &FetchWindow::making, nb::arg("making").none())
      .def_rw("copies", &FetchWindow::copies, nb::arg("copies").none())
      .def_rw("gpu_steps", &FetchWindow::gpu_steps)
      .def_rw("gpu_drained", &FetchWindow::gpu_drained)
      .def_rw("gpu_busy", &FetchWindow::gpu_busy, nb::arg("busy").none())
      .def_rw("cpus", &FetchWindow::cpus)
      .def_rw("cpu_share", &FetchWindow::cpu_share)
      .def("limit",
           [](const FetchWindow& window) {
             return std::string(name_of(limit_of(window)));
           })
      .def("worker_rate", &FetchWindow::worker_rate)
      .def("report", &report_of);
  module.def("waits_in_lock", &seen_in_lock, nb::arg("seen"));
  module.def("seconds_in_order", &in_order, nb::arg("batch_s"),
             nb::arg("workers"), nb::arg("depth"), nb::arg("loop_s"),
             nb::arg("epoch"),
             "Seconds per batch of a loop whose batches take so long to make, "
             "by whichever worker is free; epoch 0: without end.");
  module.def("waits_for_batches", &waits_for_batches, nb::arg("wait_s"),
             nb::arg("loop_s"));
}

}  // namespace penstock::python
