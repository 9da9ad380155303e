#pragma once

#include <cstdint>
#include <string>

#include "penstock/advisor/advisor.h"
#include "penstock/job/job.h"
#include "penstock/session/session.h"

namespace penstock {

/// The form of `run.json` and `report.json`. A key that is added changes
/// nothing; one that goes, or means something else, makes it higher.
constexpr std::int64_t kReportVersion = 1;

/// The first thing a run folder holds. Here and in the report `machine.gpu` is
/// what the GPU's driver tells at the time of the call; it is absent where the
/// device is no GPU.
Json run_json(const Job& job, const Device& device, const std::string& resumed,
              std::int64_t skipped = 0);

/// What a window measured and what it means: {"au", "rate", "parts", "stages",
/// "verdict"}; `rate` is in samples per second.
Json window_json(const Snapshot& window);
/// An entry of the report's `epochs`.
Json epoch_json(const RunNumbers& run, std::int64_t number);

/// The document of report.json. Without rows (the run was stopped before there
/// were any) what is not known is null. Rows that are no data set show no
/// fingerprint, which could take long.
Json report_json(const RunNumbers& run, const Job& job, const Dataset* rows,
                 const Device& device);
/// The numbers of a session up to now, as in a run's `report.json`. Waits for
/// the steps, or leaves out those that have not ended.
Json report_of(Session& session, bool wait = true);

/// The report of a run, in a few lines for people.
std::string summary_of(const Json& report);

}  // namespace penstock
