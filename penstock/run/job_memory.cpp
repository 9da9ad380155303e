#include "penstock/run/job_memory.h"

#include <algorithm>
#include <utility>

#include "penstock/base/tensor_limit.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostRows = 65536;  // that a search tries
constexpr Nanoseconds kShort = std::chrono::milliseconds(500);

void check_has_model(const Job& job, bool own_too) {
  if (!job.model.none() && (own_too || job.model.kind != "own")) return;
  throw Error(
      ErrorKind::request,
      {.code = "model.no_memory",
       .what = "cannot estimate the memory of a step",
       .where = "model",
       .why = "the job's model is " + Json(job.model.kind).dump() +
              ", whose memory this program does not know",
       .next = "name a job with a model of Penstock; for a torch module of "
               "your own there is penstock.max_batch_size()"});
}

/// A model and all that it stands on, of rows that are read and not kept.
struct OpenModel {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Dataset> rows;
  std::unique_ptr<Stepper> stepper;

  OpenModel(const Job& job, const MemoryNote& note, StopFlag stop)
      : device(device_of_run(job, {})),
        rows(planned_rows(job, *device, note, stop)),
        stepper(model_of(job, *rows, *device)) {}
  StepMemory& memory() const {
    PENSTOCK_ASSERT(stepper->memory() != nullptr,
                    "models of the trainer know their memory");
    return *stepper->memory();
  }
};

/// Bytes that may be taken in all: the limit, or what is there and what is
/// free.
std::int64_t limit_of(const Device& device, std::int64_t taken) {
  constexpr std::size_t kMost = INT64_MAX / 2;
  const std::atomic<std::size_t>* const of_device =
      tensor_limit_of(device.memory_kind());
  const std::size_t limit = of_device == nullptr ? SIZE_MAX : of_device->load();
  return static_cast<std::int64_t>(
      limit != SIZE_MAX ? std::min(limit, kMost)
                        : static_cast<std::size_t>(taken) +
                              std::min(device.memory().free, kMost));
}

/// A step of so many rows, beside `others` bytes of the device; a short one is
/// taken again, so that what only the first one does is left out of its time.
TriedBatch tried(StepMemory& memory, std::int64_t rows,
                 std::int64_t others) try {
  TriedBatch batch{.rows = rows, .fits = true};
  Nanoseconds took{0};
  for (int i = 0; i < 2 && (i == 0 || took < kShort); ++i) {
    const Nanoseconds began = wall_clock().now();
    batch.peak_bytes = memory.try_step(rows).total() + others;
    took = wall_clock().now() - began;
  }
  batch.rows_per_s = static_cast<double>(rows) / seconds(took);
  return batch;
} catch (const Error& error) {
  // Batch normalization cannot learn from a single value of a channel.
  const bool too_few = rows == 1 && error.parts().code == kNotFinite;
  if (error.kind() != ErrorKind::out_of_memory && !too_few) throw;
  return {.rows = rows};
}

/// `batches`: bytes of the device that batches of so many rows take.
FoundBatch searched(
    StepMemory& memory, const Device& device, std::int64_t most,
    const std::function<std::int64_t(std::int64_t rows)>& batches) {
  const std::int64_t fixed = memory.fixed().total();
  const std::int64_t limit = limit_of(device, fixed);
  FoundBatch found = search_batch(
      {.most = most, .limit_bytes = limit, .fixed_bytes = fixed},
      [&](std::int64_t rows) { return tried(memory, rows, batches(rows)); });
  if (found.rows > 0) return found;
  auto shown = [](std::int64_t bytes) {
    return shown_bytes(static_cast<std::size_t>(bytes));
  };
  throw Error(ErrorKind::out_of_memory,
              {.code = "trainer.no_batch_fits",
               .what = "no batch fits in memory",
               .where = "device '" + device.name() + "'",
               .why = "parameters, gradients and optimizer take " +
                      shown(fixed) + " of " + shown(limit) +
                      ", and a step of the fewest rows would not leave 8 % of "
                      "the rest free",
               .next = "raise device.memory_gib, shorten the longest rows, or "
                       "use a smaller model"});
}

std::string found_line(const char* setting, const FoundBatch& found) {
  return std::string(setting) + ": " + std::to_string(found.rows) +
         (found.rows == 1 ? " row" : " rows") + ", found by " +
         std::to_string(found.tried.size()) + " trials (limited by " +
         name_of(found.by) + ")";
}

}  // namespace

namespace {

/// Steps in Python are made for a session, whose rows are kept.
MemoryEstimate estimate_own(const Job& job, const TrainOptions& options) {
  const std::shared_ptr<Session> session = open_loader(
      job,
      {.device = device_of_run(job, options), .note = options.listener.note});
  const std::unique_ptr<Stepper> stepper = make_stepper(job, options, session);
  MemoryEstimate estimate =
      *estimate_memory(*stepper, job.loading.options.batch_size);
  add_data(estimate, job, session->rows(), session->device());
  return estimate;
}

}  // namespace

MemoryEstimate estimate_job(const Job& job, const TrainOptions& options) {
  check_has_model(job, options.own.has_value());
  if (options.own) return estimate_own(job, options);
  const OpenModel model(job, options.listener.note, StopFlag(options.stop));
  MemoryEstimate estimate =
      *estimate_memory(*model.stepper, job.loading.options.batch_size);
  add_data(estimate, job, *model.rows, *model.device);
  return estimate;
}

FoundBatch find_batch_size(const Job& job, const MemoryNote& note,
                           StopFlag stop) {
  check_has_model(job, false);
  Job one = job;  // whatever its batch: rows and model are the same
  one.loading.options.batch_size = 1;
  const OpenModel model(one, note, stop);
  const std::int64_t rows = train_order(one, model.rows->facts()).samples;
  return searched(model.memory(), *model.device,
                  std::clamp<std::int64_t>(rows, 1, kMostRows),
                  [&](std::int64_t batch) {
                    one.loading.options.batch_size = batch;
                    return batch_bytes(one, model.rows->facts());
                  });
}

Job with_batch_size(const Job& job, const TrainOptions& options) {
  if (!job.loading.find_batch_size) return job;
  const FoundBatch found =
      find_batch_size(job, options.listener.note, StopFlag(options.stop));
  if (options.listener.note)
    options.listener.note(found_line("loader.batch_size", found));
  Json document = job.document;
  document["loader"]["batch_size"] = found.rows;
  return parse_job(document);
}

std::string memory_that_fits(StepMemory& memory, std::int64_t rows,
                             const Device& device) {
  auto shown = [](std::int64_t bytes) {
    return shown_bytes(static_cast<std::size_t>(bytes));
  };
  const MemoryByOwner fixed = memory.fixed();
  const std::string known = "parameters " + shown(fixed.parameters) +
                            ", gradients " + shown(fixed.gradients) +
                            ", optimizer " + shown(fixed.optimizer);
  try {
    // Only the host has more memory than its limit says.
    const TensorLimit none(SIZE_MAX);
    const std::int64_t each = std::min(memory.micro_batch(), rows);
    const MemoryByOwner needed =
        memory.try_step(each < rows ? std::min(rows, 2 * each) : rows);
    const std::int64_t batches = data_memory(device).bytes.look_ahead;
    return "micro-batches of " + std::to_string(each) +
           (each == 1 ? " row take " : " rows take ") +
           shown(needed.total() + batches) + ": " + known + ", activations " +
           shown(needed.activations) + ", batches " + shown(batches);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return known;
  }
}

void fit_memory(const Job& job, Stepper& stepper, Session& session,
                const MemoryNote& note) {
  StepMemory* memory = stepper.memory();
  if (memory == nullptr) return;
  const std::int64_t rows = job.loading.options.batch_size;
  if (job.model.learning.find_micro_batch && memory->micro_batch() >= rows) {
    const std::int64_t batches = data_memory(session.device()).bytes.look_ahead;
    const FoundBatch found = searched(*memory, session.device(), rows,
                                      [&](std::int64_t) { return batches; });
    memory->use_micro_batch(found.rows);
    if (note) note(found_line("train.micro_batch", found));
  }
  if (!note || job.model.kind == "own") return;  // own code runs only in steps
  try {
    if (auto estimate = estimate_memory(stepper, rows)) {
      add_data(*estimate, job, session.rows(), session.device());
      note(memory_line(*estimate));
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    log(LogLevel::debug, "no estimate of the model's memory");  // steps tell
  }
}

}  // namespace penstock
