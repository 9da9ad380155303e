#include "python/engine/prepare.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "penstock/inspect/inspect.h"
#include "penstock/session/session.h"
#include "python/engine/gil.h"
#include "python/engine/messages.h"
#include "python/engine/own_stepper.h"
#include "python/engine/signals_ask.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

Job job_of(const std::string& path, const std::string& document,
           const std::vector<std::string>& sets) {
  if (!path.empty()) return load_job(path, sets);
  Json made = Json::parse(document, "the job");
  for (const std::string& set : sets) apply_setting(made, set);
  return parse_job(made);
}

PrepareListener listener_of(const nb::object& listener) {
  const Nanoseconds begun = wall_clock().now();
  return {.note =
              [&listener](const std::string& line) {
                in_python([&] { listener.attr("note")(line); });
              },
          .progress =
              [&listener, begun](const ScanProgress& progress) {
                const std::string line =
                    scan_line(progress, seconds(wall_clock().now() - begun));
                in_python([&] { listener.attr("progress")(line); });
              }};
}

/// What penstock.preparing asks for, beside the job.
struct PrepareRequest {
  TokenExport also;
  PartOfScan which;  ///< of 0: all rows
  bool commit = false;
};

Json prepared(const Job& job, const PrepareRequest& request,
              const PrepareListener& listener, StopFlag stop) {
  if (request.which.of != 0)
    return prepare_part(job, request.which, listener, stop);
  if (request.commit) return commit_parts(job, listener, stop, request.also);
  return prepare_job(job, listener, stop, request.also);
}

/// What preparing gives, "" where it was stopped, and the signal that did.
std::tuple<std::string, int> prepare(
    const std::string& path, const std::string& document,
    const std::vector<std::string>& sets, const std::string& format,
    const std::string& dir, const nb::object& listener,
    const std::vector<int>& ending, int part, int of, bool commit) {
  const Job job = job_of(path, document, sets);
  const PrepareRequest request{.also = {.format = format, .dir = dir},
                               .which = {.part = part, .of = of},
                               .commit = commit};
  SignalsAsk signals(ending, {});
  std::string found;
  try {
    GilRelease meanwhile;
    found = prepared(job, request, listener_of(listener),
                     StopFlag(&SignalsAsk::stop()))
                .dump();
  } catch (const Error& error) {
    if (!is_stop(error) || SignalsAsk::first() == 0) {
      write_messages();
      throw;
    }
  }
  write_messages();
  return {found, SignalsAsk::first()};
}

}  // namespace

void bind_prepare(nb::module_& module) {
  module.def("prepare", &prepare, nb::arg("path"), nb::arg("document"),
             nb::arg("sets"), nb::arg("format"), nb::arg("dir"),
             nb::arg("listener"), nb::arg("ending"), nb::arg("part") = 0,
             nb::arg("of") = 0, nb::arg("commit") = false);
}

}  // namespace penstock::python
