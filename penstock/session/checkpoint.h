#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "penstock/session/folder.h"
#include "penstock/session/state.h"
#include "penstock/session/stepper.h"

namespace penstock {

/// The files of the weights that a run keeps, in its folder: as
/// `model.safetensors` of an output has them.
inline constexpr const char* kWeightsFolder = "weights";
inline constexpr const char* kBestWeights = "best.safetensors";
inline constexpr const char* kLastWeights = "last.safetensors";

/// Saves where a run stands, model and data position in one commit.
///
/// The model's file `checkpoint-<steps>.safetensors` is written first, then
/// `state.json`, which names it with its SHA-256: that rename is the commit, so
/// that a crash at any point leaves the state before or after. The two newest
/// models are kept.
///
/// The weights of the best validation are written before the state that
/// describes them, as `weights/best.safetensors`; those that they replace stay
/// as `weights/best-before.safetensors`. So the newest state and the one before
/// it find theirs in one of the two, by their SHA-256.
class Checkpoints {
 public:
  /// `keeps_best`: of a state whose best validation was after its last step,
  /// the weights are kept.
  explicit Checkpoints(RunFolder& folder, bool keeps_best = false)
      : folder_(folder), keeps_best_(keeps_best) {}
  /// Without a model (null) only the position is saved. Throws
  /// Error(transform), code train.not_finite, and writes nothing, where the
  /// model holds a value that is not a number.
  void save(SavedState state, const ModelState* model);
  /// Writes the text as `statistics.json`, and notes its SHA-256 in `state`,
  /// which is to be saved next.
  void save_statistics(const std::string& text, SavedState& state);
  /// Writes the best weights of the run that is resumed, which `state`
  /// describes. It is to be saved next.
  void save_best(const std::string& bytes, const SavedState& state);
  /// The newest commit; missing: there was none.
  const std::optional<SavedState>& newest() const { return last_; }

 private:
  void complete_best(SavedState& state, const ModelState* model);
  std::string write_best(const ModelState& model);

  RunFolder& folder_;
  const bool keeps_best_;
  std::string best_there_;          // SHA-256 of weights/best.safetensors
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
  /// The file of the best weights, where the run kept them.
  std::optional<std::string> best;
  std::string warning;  ///< that the newest checkpoint was not usable
};

/// The newest commit of a run whose checkpoint is whole; the one before it,
/// with a warning, when the newest is damaged. Throws Error(request) if none
/// exists, or when the statistics or the best weights are not those that were
/// saved.
Resumption read_resumption(const std::string& run_folder);

}  // namespace penstock
