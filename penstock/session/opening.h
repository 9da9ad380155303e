#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "penstock/job/job.h"
#include "penstock/session/agreement.h"
#include "penstock/session/state.h"

namespace penstock {

/// Makes rows on a session's device. `stop` is set by OpenOptions::stop and by
/// Session::close().
using RowsMaker = std::function<std::shared_ptr<const Dataset>(
    const Job& job, Device& device, StopFlag stop)>;

/// How a job is opened, where that is not in its file.
struct OpenOptions {
  Side side = Side::train;
  Rank rank;
  /// Batches in all. Missing: the job's epochs and max_steps, less the steps
  /// that `state` has behind it; -1: no end.
  std::optional<std::int64_t> batches;
  /// What happens between a batch and the next call is a step: it is measured
  /// for report(), and on `sim` it takes the device's step time.
  bool timed = false;
  /// Set by another thread to end the opening, or reading rows later, by an
  /// error. Sessions may share it; none of them sets it. May be missing.
  std::shared_ptr<const std::atomic<bool>> stop;
  /// A device that is open already. Missing: the job's is opened.
  std::shared_ptr<Device> device;
  /// Rows of the caller, to which `statistics` and `note` do not apply.
  /// Missing: those of the job's source.
  RowsMaker rows;
  /// Statistics of an earlier run, to be applied instead of fitted.
  std::optional<Json> statistics;
  /// Where an earlier run stopped: the session begins there. Throws
  /// Error(request) where the rows, fields or order are not those of the run.
  std::optional<SavedState> state;
  /// Called with a line for people before something large is begun: the limit
  /// of the scan, where the rows will be stored. May be empty.
  std::function<void(const std::string& line)> note;
  /// Lets the ranks compare what they have opened (see compare_ranks()), once
  /// per opening; not called where the opening was stopped. Missing, with
  /// several ranks of a job's source: the job must name `source.fingerprint`.
  Agree agree;
  /// The caller compares rank_facts() itself, after the opening.
  bool agrees_later = false;
  /// How many epochs report() lists: the last ones.
  std::size_t epochs_listed = 1000;
};

/// Throws Error(request) where `rank` is not below its world. `code` and
/// `where` are those of the one who was given it.
void check_rank(const Rank& rank, const char* code = "loader.rank",
                const char* where = "rank, world");

/// Reads and prepares the rows of a job's source on `device`. Throws what
/// reading and preparing throw.
std::shared_ptr<const Dataset> open_rows(const Job& job, Device& device,
                                         const OpenOptions& options,
                                         StopFlag stop);

/// Rows that were read and planned, of which nothing is kept. `note` and `stop`
/// as in OpenOptions, but for the plan itself. Where WORLD_SIZE says that there
/// are several ranks, the plan is that of each of them.
std::shared_ptr<const Dataset> planned_rows(
    const Job& job, Device& device,
    const std::function<void(const std::string& line)>& note, StopFlag stop);
/// For people and scripts: "rows", "train_rows", "val_rows", "plan",
/// "preparation", of an order in pages "order", and of several sources
/// "epoch_rows" and "sources", each with its "preparation".
Json plan_json(const Job& job, const DatasetFacts& facts);
/// How the rows of each source are prepared, and why: a line each. Empty for
/// arrays and functions.
std::string preparations_text(const DatasetFacts& facts);
/// "order: pages of 4096 rows, shuffled in windows of 16: ...", with how evenly
/// a batch is spread over the rows, and how evenly one of the exact order would
/// be. Empty for the exact order.
std::string order_line(const Order& order);
/// "chunks: the exact order decodes about ... in an epoch": what an order costs
/// where rows are read from chunks that do not all stay in memory, and the
/// pages that cost less. Empty where each is decoded once.
std::string chunk_line(const Order& order, const DatasetFacts& facts);
/// What an epoch takes of several sources, for people; empty where there is
/// one.
std::string mixture_text(const Job& job, const DatasetFacts& facts);
/// Of the train side of rows that were planned.
Order train_order(const Job& job, const DatasetFacts& facts);

}  // namespace penstock
