#include "penstock/run/model_stepper.h"

#include <algorithm>

#include "penstock/run/trainer_plugin.h"

namespace penstock {
namespace {

/// Whether the model needs no more than is known of rows without a scan.
bool learns_without_scan(const ModelSpec& model) {
  auto kind = std::ranges::find(model_kinds(), model.kind, &ModelKind::name);
  return kind->without_scan && !model.learning.balanced_classes;
}

/// The rows that a model is made for: the session holds them, too.
std::shared_ptr<const FittedDataset> rows_for(const ModelSpec& model,
                                              const Session& session) {
  std::shared_ptr<const FittedDataset> rows = session.fitted();
  if (rows != nullptr &&
      (session.dataset() != nullptr || learns_without_scan(model)))
    return rows;
  throw Error(ErrorKind::request,
              {.code = "model.needs_table",
               .what = "cannot train a model on these rows",
               .where = "model",
               .why = "they are read by position, without the initial scan "
                      "that the model needs",
               .next = "keep the rows: \"loader\": {\"cache\": \"ram\"}; or "
                       "set \"model\" to \"none\""});
}

[[noreturn]] void refuse_without_python() {
  throw Error(ErrorKind::request,
              {.code = "model.needs_python",
               .what = "cannot train a model of your own here",
               .where = "model",
               .why = "\"kind\" is own: a module of torch, in Python",
               .next = "use 'penstock train' or penstock.train() of Python"});
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
  return device;
}

std::unique_ptr<Stepper> make_stepper(const Job& job,
                                      const TrainOptions& options,
                                      const std::shared_ptr<Session>& session) {
  if (job.model.none()) return std::make_unique<NoModel>(session->device());
  const std::int64_t steps = steps_in_all(job, session->order());
  if (options.own) return options.own->make_stepper(job, session, steps);
  return open_model(job.model, *rows_for(job.model, *session),
                    session->device(), steps);
}

}  // namespace penstock
