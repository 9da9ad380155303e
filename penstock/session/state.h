#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/job/job.h"

namespace penstock {

/// The best validation of a run so far, over all that it was resumed from.
struct Best {
  std::int64_t epoch = 0;  ///< of the last step before it, from 0
  std::int64_t step = 0;   ///< steps that the run had taken
  std::string metric;
  double value = 0;
  /// Of the weights that were validated, in the run's folder (see Checkpoints);
  /// empty: they are not kept.
  std::string sha256 = {};
  std::int64_t since = 0;  ///< validations after it, none of them better
};

/// Where a run stands: its folder's `state.json`, and what `--resume` reads.
struct SavedState {
  Position position;  ///< of the next batch
  std::int64_t steps_taken = 0;
  std::string fingerprint;  ///< empty: the rows had not all been read
  Json order;               ///< what decides which sample comes when
  Json fields;              ///< what decides the tensors of a row
  std::string checkpoint;   ///< the model's file in the folder; may be empty
  std::string checkpoint_sha256;
  std::string statistics_sha256;  ///< of statistics.json; may be empty
  /// The epoch of the last step, where not all held-out rows were seen after
  /// it.
  std::optional<std::int64_t> to_validate;
  std::optional<Best> best;  ///< missing: nothing was validated yet
};

Json json_of(const SavedState& state);

/// The state in a document of `state.json`; `name` is for messages. Throws
/// Error(request).
SavedState parse_state(const Json& json, const std::string& name);

/// The states that a folder holds.
struct SavedStates {
  SavedState newest;
  /// The one that was saved before it and still has its checkpoint, as far as
  /// it can be read.
  std::optional<SavedState> before;
};

/// Throws Error(request) if none exists or the newest is damaged.
SavedStates read_states(const std::string& run_folder);

/// Moves the position by so many steps of data, over the ends of epochs: on, to
/// leave out what made the loss jump, or, below 0, back to take it again. What
/// counts steps, such as the learning rate, continues as before, and the job as
/// many steps as it has. Throws Error(request), code resume.skip, for a run
/// that had not begun, for one that has no step left, and for a place before
/// the first step or too far on.
void skip_steps(SavedState& state, std::int64_t steps, const Job& job);

/// The largest count of epochs or steps in a state: sums of a few, and
/// programs whose numbers are floats, have them exactly.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;
/// The last epoch of a loader, whose epochs cost nothing: one more has a
/// number.
inline constexpr std::int64_t kLastEpoch = INT64_MAX - 1;
/// Throws Error(request), code resume.no_state, for a position that no run gets
/// to: with more steps before it than that; `each`: those of an epoch.
void check_reachable(Position at, std::int64_t each, const std::string& where);

/// Whether the run ended early, since so many validations as `train.patience`
/// says were not better than the best.
bool out_of_patience(const SavedState& state, const Job& job);
/// Whether the run has taken all steps that the job asks for, or is out of
/// patience, and validated what it had to, so that nothing is left to resume.
bool has_ended(const SavedState& state, const Job& job);

/// What a resumed run must share: the order and how rows fall on sides.
Json order_json(const Order& order, const Split& split);

/// These recipes as runs have them whose classes were numbered from 1, behind
/// the unknown one; without such categories they are the same.
Json with_old_numbering(const Json& recipes);
/// Why such a run cannot be gone on from.
inline constexpr const char* kOldNumbering =
    "the run numbered its classes from 1, with 0 for the unknown class; "
    "classes are now numbered from 0, and the unknown class is the last";

/// Throws Error(request) that names the first setting in which the job's fields
/// or operations are not those of the run. Needs no table. Nothing is refused
/// of a run that had not begun.
void check_same_fields(const SavedState& state, const Job& job);

/// Throws Error(request) when going on from `state` would give other batches
/// than the run would have had.
void check_goes_on(const SavedState& state, const Dataset& rows,
                   const Order& order, const Split& split);

}  // namespace penstock
