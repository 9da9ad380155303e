#include "penstock/session/model_stepper.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "penstock/base/tensor_limit.h"
#include "penstock/session/keeping.h"
#include "penstock/session/memory_estimate.h"
#include "penstock/session/trainer_plugin.h"
#include "penstock/session/weights.h"

namespace penstock {
namespace {

/// Whether the model needs no more than is known of rows without a scan.
bool learns_without_scan(const ModelSpec& model) {
  auto kind = std::ranges::find(model_kinds(), model.kind, &ModelKind::name);
  return kind->without_scan && !model.learning.balanced_classes;
}

/// The fields that a model of these rows is made for.
const FittedFields& fields_for(const ModelSpec& model,
                               const DatasetFacts& rows) {
  if (rows.fitted != nullptr &&
      (rows.scan != nullptr || learns_without_scan(model)))
    return *rows.fitted;
  throw Error(ErrorKind::request,
              {.code = "model.needs_table",
               .what = "cannot train a model on these rows",
               .where = "model",
               .why = "the rows are read by position, without the initial scan "
                      "that the model needs",
               .next = "keep the rows: \"loader\": {\"cache\": \"ram\"}; or "
                       "set \"model\" to \"none\""});
}

/// The device, which limits the tensors on it while it lives, where the job
/// sets a limit.
std::shared_ptr<Device> limited(std::shared_ptr<Device> device,
                                const DeviceSpec& spec) {
  std::atomic<std::size_t>* const limit =
      tensor_limit_of(device->memory_kind());
  if (limit == nullptr || !std::isfinite(spec.memory_gib)) return device;
  struct Limited {
    Limited(std::shared_ptr<Device> of, std::size_t bytes,
            std::atomic<std::size_t>& limit_of_device)
        : device(std::move(of)), limit(bytes, limit_of_device) {}
    std::shared_ptr<Device> device;
    TensorLimit limit;
  };
  auto both = std::make_shared<Limited>(
      std::move(device), static_cast<std::size_t>(spec.memory_gib * 0x1p30),
      *limit);
  return {both, both->device.get()};
}

[[noreturn]] void refuse_without_python() {
  throw Error(ErrorKind::request,
              {.code = "model.needs_python",
               .what = "this program cannot train your own model",
               .where = "model",
               .why = "\"kind\" is \"own\", a torch module in Python",
               .next = "use 'penstock train', or penstock.train() in Python"});
}

}  // namespace

std::shared_ptr<Device> device_of_run(const Job& job,
                                      const TrainOptions& options) {
  const std::optional<OwnTrainer>& own = options.own;
  if (job.model.kind == "own" && !own) refuse_without_python();
  std::unique_ptr<Device> device =
      open_device(job.device, own ? own->allocator : DeviceAllocator{});
  check_model_device(job.model, device->memory_kind());
  if (!job.model.none())  // what is missing is heard before the table is read
    device = training_device(std::move(device), job.device,
                             own ? own->cuda_unavailable_reason
                                 : load_trainer().cuda_unavailable_reason);
  return limited(std::move(device), job.device);
}

std::unique_ptr<Stepper> make_stepper(const Job& job,
                                      const TrainOptions& options,
                                      const std::shared_ptr<Session>& session,
                                      const std::filesystem::path& folder) {
  if (job.model.none()) return std::make_unique<NoModel>(session->device());
  const std::int64_t steps = steps_in_all(job, session->order());
  if (options.own)
    return options.own->make_stepper(job, session, steps, folder);
  const std::shared_ptr<const Dataset> rows = session->opened();
  return open_model(job.model, fields_for(job.model, rows->facts()),
                    session->device(), steps);
}

void check_model(const Job& job, const Dataset& rows, Device& device,
                 const std::function<void(const std::string& line)>& note) {
  if (job.model.none() || job.model.kind == "own") return;  // of Python
  const std::int64_t steps = steps_in_all(job, train_order(job, rows.facts()));
  if (const std::string line = warmup_line(job, steps); !line.empty())
    note(line);
  if (reads_path(job.model)) return;  // gigabytes, perhaps
  const std::unique_ptr<Stepper> stepper = model_of(job, rows, device);
  if (auto estimate =
          estimate_memory(*stepper, job.loading.options.batch_size)) {
    add_data(*estimate, job, rows, device);
    note(memory_line(*estimate));
  }
  check_room(*stepper, job.output.dir, job, note);
}

std::unique_ptr<Stepper> model_of(const Job& job, const Dataset& rows,
                                  Device& device) {
  return open_model(job.model, fields_for(job.model, rows.facts()), device,
                    steps_in_all(job, train_order(job, rows.facts())));
}

std::string warmup_line(const Job& job, std::int64_t steps) {
  const std::int64_t warmup = warmup_of(job.model.learning, steps);
  if (job.model.none() || warmup < steps) return "";
  return "the warm-up is longer than the run: train.warmup_steps is " +
         std::to_string(warmup) + ", but the run takes only " +
         std::to_string(steps) +
         " steps, so the learning rate reaches train.lr at the last step at "
         "the earliest. Set train.warmup_steps to " +
         std::to_string(steps / 10) + ", for example";
}

void check_room(Stepper& stepper, const std::filesystem::path& folder,
                const Job& job,
                const std::function<void(const std::string& line)>& note) {
  if (!stepper.facts().has_model) return;
  // Two are kept while one is written.
  const bool one =
      job.training.epochs == 1 && !job.training.checkpoint_every_steps;
  const std::size_t at_once = one ? 1 : 3;
  const ModelState state = stepper.save();
  const std::size_t bytes = state.memory.size();
  // The best, those before, and what replaces them; or the last.
  std::size_t weights = 0;
  for (const NamedTensor& tensor : kept_weights(state))
    weights += tensor.view.bytes();
  const std::size_t needed =
      at_once * bytes +
      (keeps_best(job, job.split.validates()) ? 3 : 1) * weights;
  const std::optional<std::size_t> free = free_bytes(folder);
  const std::string size = shown_bytes(bytes);
  if (free && *free < needed)
    throw Error(
        ErrorKind::request,
        {.code = "output.no_room",
         .what = "there is not enough space for checkpoints",
         .where = folder.string(),
         .why = "each checkpoint takes " + size + ", up to " +
                std::to_string(at_once) + " exist at once, the weights " +
                "that are kept take " + shown_bytes(needed - at_once * bytes) +
                ", and " + shown_bytes(*free) + " are free",
         .next = "free some space, or name another folder as output.dir"});
  if (note)
    note("checkpoints: " + size + " each, up to " + std::to_string(at_once) +
         " at once; " + (free ? shown_bytes(*free) : "n/a") + " free in " +
         folder.string());
}

}  // namespace penstock
