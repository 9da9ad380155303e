#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "penstock/session/session.h"

namespace penstock {

/// How much of a job is looked at, and how often it is restarted.
struct ResumeCheck {
  /// The first steps of the job; 0: two epochs, or the job where it is shorter.
  std::int64_t steps = 0;
  /// Restarts in place, spread evenly over these steps; -1: at every step.
  std::int64_t points = 100;
  /// Runs over all these steps that are ended and opened again again and again.
  std::int64_t chains = 3;
  int most_ranks = 4;  ///< of a chain between two restarts
  std::uint64_t seed = 0;
  /// Set by another thread to end the check by an error for which is_stop()
  /// holds. May be missing.
  const std::atomic<bool>* stop = nullptr;
  /// Called with a line for people, often. May be empty.
  std::function<void(const std::string& line)> progress;
  /// Rows of the caller, as in OpenOptions. Missing: those of the job's source.
  RowsMaker rows;
};

/// Takes a job's first steps without interruption, and then again from saved
/// states: in place, and by chains of restarts, which open the rows again, each
/// time with other numbers of ranks, workers and batches ahead. Compares each
/// row of each batch, and its sample.
///
/// Gives {"steps", "epochs", "points", "chains", "restarts", "most_ranks",
/// "why_one_rank", "divergences", "first_divergences", "state_bytes",
/// "in_place_ms", "resume_ms"}: `divergences` counts batches; the first ten are
/// described, with the first row that differs where that is known.
/// `state_bytes` is the longest Session::state(); the times are {"median",
/// "max"} until the first batch, of restarts in place and in chains.
/// `most_ranks` is 1 where a batch depends on the number of ranks: with
/// operations that mix its rows, and with packed samples; `why_one_rank`
/// reports it then, and is null elsewhere. Nothing was restarted where `points`
/// and `restarts` are 0.
///
/// Trains nothing and writes no run. Throws Error(request) for numbers that
/// make no sense, neither points nor chains among them, and what reading and
/// preparing throw.
Json verify_resume(const Job& job, const ResumeCheck& check);

}  // namespace penstock
