#include "python/engine/progress_line.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>

#include "penstock/monitor/monitor.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

StepParts parts_of(std::int64_t steps, double wait_s, double loop_s) {
  auto ns = [](double s) { return Nanoseconds(std::llround(1e9 * s)); };
  return {.steps = steps,
          .wall = ns(wait_s) + ns(loop_s),
          .compute = ns(loop_s),
          .wait_data = ns(wait_s)};
}

std::string line_of(std::int64_t epoch, std::int64_t epochs, std::int64_t step,
                    std::int64_t steps, double elapsed_s, std::int64_t taken,
                    double wait_s, double loop_s, int columns) {
  std::int64_t later = std::max<std::int64_t>(0, epochs - 1 - epoch);
  return progress_line(
      {.epoch = epoch,
       .epochs = epochs,
       .step = step,
       .steps = steps,
       .elapsed_s = elapsed_s,
       .steps_taken = taken,
       .steps_left = steps > 0 ? steps - step + later * steps : -1,
       .parts = parts_of(taken, wait_s, loop_s),
       .limits = read_host_limits(),
       .use = read_host_use()},
      columns);
}

}  // namespace

void bind_progress_line(nb::module_& module) {
  module.def("line_of", &line_of, nb::arg("epoch"), nb::arg("epochs"),
             nb::arg("step"), nb::arg("steps"), nb::arg("elapsed_s"),
             nb::arg("taken"), nb::arg("wait_s"), nb::arg("loop_s"),
             nb::arg("columns"));
  module.def(
      "shares_of",
      [](std::int64_t steps, double wait_s, double loop_s) {
        return shown_shares(parts_of(steps, wait_s, loop_s));
      },
      nb::arg("steps"), nb::arg("wait_s"), nb::arg("loop_s"));
}

}  // namespace penstock::python
