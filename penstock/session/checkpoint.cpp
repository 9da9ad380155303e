#include "penstock/session/checkpoint.h"

#include <algorithm>

#include "penstock/base/sha256_of.h"
#include "penstock/base/temporary.h"
#include "penstock/session/not_finite.h"
#include "penstock/session/safetensors.h"
#include "penstock/session/weights.h"

namespace penstock {
namespace {

constexpr const char* kStatistics = "statistics.json";
constexpr const char* kCheckpoint = "checkpoint-";
constexpr const char* kBestBefore = "best-before.safetensors";

/// Sorts by steps.
std::string file_of(std::int64_t steps) {
  std::string digits = std::to_string(steps);
  return kCheckpoint +
         std::string(12 - std::min<std::size_t>(12, digits.size()), '0') +
         digits + ".safetensors";
}

using Pieces = std::vector<std::span<const std::byte>>;

std::string sha256_of_all(const Pieces& pieces) {
  Sha256 hash;
  for (const auto& piece : pieces) hash.add(piece);
  return hash.hex();
}

/// A safetensors file, from where its tensors are: they are not copied.
Pieces pieces_of(const std::string& header,
                 const std::vector<NamedTensor>& tensors) {
  Pieces pieces = {std::as_bytes(std::span(header))};
  for (const NamedTensor& tensor : tensors)
    pieces.emplace_back(tensor.view.data, tensor.view.bytes());
  return pieces;
}

[[noreturn]] void refuse(const std::string& path, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "resume.damaged_checkpoint",
               .what = "cannot resume the run",
               .where = path,
               .why = std::move(why),
               .next = "restore the file from a copy, or start a new run"});
}

/// The bytes of a file of a run, of which `saved` is the SHA-256. Throws
/// Error(request) when it is missing or is not what was committed.
std::string read_committed(const std::string& path, const std::string& saved) {
  std::string bytes;
  try {
    bytes = real_files().read(path);
  } catch (const Error& error) {
    refuse(path, error.parts().why);
  }
  std::string found = sha256_of(bytes);
  if (found != saved)
    refuse(path, "the file's " + std::to_string(bytes.size()) +
                     " bytes have the SHA-256 " + found.substr(0, 12) +
                     ", but the run wrote a file with SHA-256 " +
                     saved.substr(0, 12));
  return bytes;
}

/// The model of a commit; nullopt when the run had none. Throws Error(request)
/// when the file is missing or is not what was committed.
std::optional<ModelState> read_model(const std::string& run_folder,
                                     const SavedState& state) {
  if (state.checkpoint.empty()) return std::nullopt;
  std::string path = run_folder + "/" + state.checkpoint;
  std::string bytes = read_committed(path, state.checkpoint_sha256);
  ModelState model = read_safetensors(bytes, path);
  const Json* remark =
      model.json.is_object() ? model.json.find(kModelRemark) : nullptr;
  if (remark == nullptr || !remark->is_string())
    refuse(path, "the file does not hold a Penstock model");
  model.json = Json::parse(std::string(remark->string()), path);
  return model;
}

/// The file of the best weights; nullopt where the run kept none. A newer file
/// than the commit describes is not looked at.
std::optional<std::string> read_best(const std::string& run_folder,
                                     const SavedState& state) {
  if (!state.best || state.best->sha256.empty()) return std::nullopt;
  const std::string folder = run_folder + "/" + kWeightsFolder + "/";
  try {
    return read_committed(folder + kBestWeights, state.best->sha256);
  } catch (const Error&) {
    try {
      return read_committed(folder + kBestBefore, state.best->sha256);
    } catch (const Error&) {
    }
    throw;
  }
}

/// nullopt where the rows had not all been read.
std::optional<Json> read_statistics(const std::string& run_folder,
                                    const SavedState& state) {
  if (state.statistics_sha256.empty()) return std::nullopt;
  std::string path = run_folder + "/" + kStatistics;
  return Json::parse(read_committed(path, state.statistics_sha256), path);
}

// A checkpoint that was damaged after its commit (SHA-256 differs) costs the
// steps since the one before, and not the run.
Resumption read_model_and_state(const std::string& run_folder) {
  auto [newest, before] = read_states(run_folder);
  try {
    return {.state = newest, .model = read_model(run_folder, newest)};
  } catch (const Error& error) {
    if (!before || before->checkpoint.empty()) throw;
    return {.state = *before,
            .model = read_model(run_folder, *before),
            .warning = "the newest checkpoint cannot be used (" +
                       error.parts().where + ": " + error.parts().why +
                       "); resuming from step " +
                       std::to_string(before->steps_taken) + " instead"};
  }
}

}  // namespace

std::string text_of_statistics(const Json& statistics) {
  return statistics.dump(2) + "\n";
}

std::string sha256_of_statistics(const Json& statistics) {
  return sha256_of(text_of_statistics(statistics));
}

std::optional<std::string> note_rows(SavedState& state, const Job& job,
                                     const Dataset& rows, const Order& order) {
  state.fingerprint = rows.fingerprint();
  state.order = order_json(order, job.split);
  state.fields = recipes_of(job);
  const Json statistics = rows.statistics();
  if (statistics.is_null()) return std::nullopt;
  std::string text = text_of_statistics(statistics);
  state.statistics_sha256 = sha256_of(text);
  return text;
}

void Checkpoints::save_statistics(const std::string& text, SavedState& state) {
  folder_.write_bytes(kStatistics, text, Lasting::with_next);
  state.statistics_sha256 = sha256_of(text);
}

void Checkpoints::save_best(const std::string& bytes, const SavedState& state) {
  folder_.inside(kWeightsFolder).write(kBestWeights, bytes, Lasting::now);
  best_there_ = state.best->sha256;
}

/// Says which weights are the best: those of the commit before, those that a
/// resumed run brought along, or those of this model, which are written. Where
/// none of these exist (a commit has failed), the best are those of the
/// commit before.
void Checkpoints::complete_best(SavedState& state, const ModelState* model) {
  if (!state.best) return;
  Best& best = *state.best;
  const std::optional<Best> before = last_ ? last_->best : std::nullopt;
  if (!keeps_best_)
    best.sha256.clear();
  else if (before && before->step == best.step)
    best.sha256 = before->sha256;
  else if (best.sha256.empty() && best.step == state.steps_taken && model)
    best.sha256 = write_best(*model);
  else if (best.sha256.empty())
    state.best = before;
}

/// Its SHA-256. The file that the newest commit describes stays under its
/// second name.
std::string Checkpoints::write_best(const ModelState& model) {
  OutputFolder folder = folder_.inside(kWeightsFolder);
  if (last_ && last_->best && !best_there_.empty() &&
      last_->best->sha256 == best_there_)
    folder.keep_as(kBestWeights, kBestBefore);
  const std::vector<NamedTensor> weights = kept_weights(model);
  const std::string header = safetensors_header(weights, weights_remarks());
  const auto pieces = pieces_of(header, weights);
  const std::string written = sha256_of_all(pieces);
  folder.write(kBestWeights, pieces, Lasting::now);
  return best_there_ = written;
}

// The order keeps the invariant: all models that state.json names, its own and
// that of "before", are on the disk and whole.
//   1. The model goes into a file of a new name, and its bytes are synced. Its
//      name need not last yet (Lasting::with_next): nothing refers to it.
//   2. state.json replaces the old one by a rename, and the folder is synced,
//      which makes both names last. This is the commit.
//   3. Only now the model before the last is removed, which no state names.
// So a crash in 1 leaves a temporary file, which is swept later; one between 2
// and 3 leaves a third model. Disk space is needed for three models at once.
void Checkpoints::save(SavedState state, const ModelState* model) {
  state.checkpoint.clear();
  if (model != nullptr) {
    if (auto tensor = tensor_without_number(*model))
      throw not_finite_error(
          "step " + std::to_string(state.steps_taken) + ", tensor '" + *tensor +
              "'",
          "the tensor holds NaN, so no checkpoint was written",
          "resume the previous checkpoint with another train.lr, or skip the "
          "rows of these steps: --resume RUN --skip STEPS");
    sweep_checkpoints(folder_.path());
    Json remarks;
    remarks[kModelRemark] = model->json.dump();
    const std::string header = safetensors_header(model->tensors, remarks);
    const auto pieces = pieces_of(header, model->tensors);
    state.checkpoint = file_of(state.steps_taken);
    state.checkpoint_sha256 = sha256_of_all(pieces);
    complete_best(state, model);
    folder_.write_bytes(state.checkpoint, pieces, Lasting::with_next);
  } else {
    complete_best(state, nullptr);
  }
  Json document = json_of(state);
  bool moved_on = last_ && last_->checkpoint != state.checkpoint;
  if (moved_on) document["before"] = json_of(*last_);
  folder_.write("state.json", document);
  if (moved_on && !oldest_.empty()) folder_.remove(oldest_);
  if (moved_on) oldest_ = last_->checkpoint;
  last_ = std::move(state);
}

void sweep_checkpoints(const std::filesystem::path& run_folder) noexcept {
  remove_leftovers(run_folder, kCheckpoint);
  remove_leftovers(run_folder / kWeightsFolder, kBestWeights);
}

Resumption read_resumption(const std::string& run_folder) {
  Resumption from = read_model_and_state(run_folder);
  from.statistics = read_statistics(run_folder, from.state);
  from.best = read_best(run_folder, from.state);
  return from;
}

}  // namespace penstock
