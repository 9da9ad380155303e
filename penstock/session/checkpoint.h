#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "penstock/session/folder.h"
#include "penstock/session/state.h"
#include "penstock/session/stepper.h"

namespace penstock {

/// Saves where a run stands, model and data position in one commit.
///
/// The model's file `checkpoint-<steps>.safetensors` is written first, then
/// `state.json`, which names it with its SHA-256: that rename is the commit, so
/// that a crash at any point leaves the state before or after. The two newest
/// models are kept.
class Checkpoints {
 public:
  explicit Checkpoints(RunFolder& folder) : folder_(folder) {}
  /// Without a model (null) only the position is saved. Throws
  /// Error(transform), code train.not_finite, and writes nothing, where the
  /// model holds a value that is not a number.
  void save(SavedState state, const ModelState* model);
  /// Writes the text as `statistics.json`, and notes its SHA-256 in `state`,
  /// which is to be saved next.
  void save_statistics(const std::string& text, SavedState& state);

 private:
  RunFolder& folder_;
  std::optional<SavedState> last_;  // the commit before
  std::string oldest_;              // the model's file of the one before that
};

/// The bytes of the `statistics.json` that holds them, and their SHA-256 in
/// hex.
std::string text_of_statistics(const Json& statistics);
std::string sha256_of_statistics(const Json& statistics);

/// Notes in `state` what a run that goes on must find again: the rows and their
/// statistics, the order, the fields. Gives the text of `statistics.json`;
/// nullopt where the rows have no statistics.
std::optional<std::string> note_rows(SavedState& state, const Job& job,
                                     const Dataset& rows, const Order& order);

/// Removes what is left of checkpoints whose writers were killed: each is as
/// large as a model. One that is being written stays.
void sweep_checkpoints(const std::filesystem::path& run_folder) noexcept;

/// Where a run continues from.
struct Resumption {
  SavedState state;
  std::optional<ModelState> model;  ///< where the run had one
  /// What the run's rows were standardised with; missing where it had not read
  /// them all.
  std::optional<Json> statistics;
  std::string warning;  ///< that the newest checkpoint was not usable
};

/// The newest commit of a run whose checkpoint is whole; the one before it,
/// with a warning, when the newest is damaged. Throws Error(request) if none
/// exists, or when the statistics are not those that were saved.
Resumption read_resumption(const std::string& run_folder);

}  // namespace penstock
