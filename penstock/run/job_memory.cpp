#include "penstock/run/job_memory.h"

#include <algorithm>
#include <utility>

#include "penstock/base/tensor_limit.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostRows = 65536;  // that a search tries
constexpr Nanoseconds kShort = std::chrono::milliseconds(500);

void check_has_model(const Job& job) {
  if (!job.model.none() && job.model.kind != "own") return;
  throw Error(
      ErrorKind::request,
      {.code = "model.no_memory",
       .what = "cannot tell what a step takes",
       .where = "model",
       .why = "the job's model is " + Json(job.model.kind).dump() +
              ", of which this program knows no memory",
       .next = "name a job with a model of Penstock; for a torch module of "
               "your own there are penstock.estimate_memory() and "
               "penstock.max_batch_size()"});
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
  const std::size_t limit = device.memory_kind() == MemoryKind::cpu
                                ? tensor_limit().load()
                                : SIZE_MAX;
  return static_cast<std::int64_t>(
      limit != SIZE_MAX ? std::min(limit, kMost)
                        : static_cast<std::size_t>(taken) +
                              std::min(device.memory().free, kMost));
}

/// A step of so many rows; a short one is taken again, so that what only the
/// first one does is left out of its time.
TriedBatch tried(StepMemory& memory, std::int64_t rows) try {
  TriedBatch batch{.rows = rows, .fits = true};
  Nanoseconds took{0};
  for (int i = 0; i < 2 && (i == 0 || took < kShort); ++i) {
    const Nanoseconds began = wall_clock().now();
    batch.peak_bytes = memory.try_step(rows).total();
    took = wall_clock().now() - began;
  }
  batch.rows_per_s = static_cast<double>(rows) / seconds(took);
  return batch;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::out_of_memory) throw;
  return {.rows = rows};
}

FoundBatch searched(StepMemory& memory, const Device& device,
                    std::int64_t most) {
  const MemoryByOwner one = memory.try_step(1);
  const std::int64_t fixed = one.total() - one.activations;
  FoundBatch found =
      search_batch({.most = most,
                    .limit_bytes = limit_of(device, fixed),
                    .fixed_bytes = fixed},
                   [&](std::int64_t rows) { return tried(memory, rows); });
  if (found.rows > 0) return found;
  throw Error(ErrorKind::out_of_memory,
              {.code = "trainer.no_batch_fits",
               .what = "no batch fits in memory",
               .where = "device '" + device.name() + "'",
               .why = "a step of one row takes " +
                      shown_bytes(static_cast<std::size_t>(one.total())) +
                      ", which leaves less than 8 % of the memory free",
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

MemoryEstimate estimate_job(const Job& job, const MemoryNote& note,
                            StopFlag stop) {
  check_has_model(job);
  const OpenModel model(job, note, stop);
  MemoryEstimate estimate =
      *estimate_memory(*model.stepper, job.loading.options.batch_size);
  if (model.device->memory_kind() != MemoryKind::cpu)
    estimate.cache =
        static_cast<std::int64_t>(model.rows->plan().device_bytes());
  return estimate;
}

FoundBatch find_batch_size(const Job& job, const MemoryNote& note,
                           StopFlag stop) {
  check_has_model(job);
  Job one = job;  // whatever its batch: rows and model are the same
  one.loading.options.batch_size = 1;
  const OpenModel model(one, note, stop);
  const std::int64_t rows = train_order(one, model.rows->facts()).samples;
  return searched(model.memory(), *model.device,
                  std::clamp<std::int64_t>(rows, 1, kMostRows));
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

void fit_memory(const Job& job, Stepper& stepper, Session& session,
                const MemoryNote& note) {
  StepMemory* memory = stepper.memory();
  if (memory == nullptr) return;
  const std::int64_t rows = job.loading.options.batch_size;
  if (job.model.learning.find_micro_batch && memory->micro_batch() >= rows) {
    const FoundBatch found = searched(*memory, session.device(), rows);
    memory->use_micro_batch(found.rows);
    if (note) note(found_line("train.micro_batch", found));
  }
  if (!note) return;
  try {
    if (const auto estimate = estimate_memory(stepper, rows))
      note(memory_line(*estimate));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    log(LogLevel::debug, "no estimate of the model's memory");  // steps tell
  }
}

}  // namespace penstock
