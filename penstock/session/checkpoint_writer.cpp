#include "penstock/session/checkpoint_writer.h"

#include <utility>

// `busy_` hands the members over: while it is true they belong to the writing
// thread, else to the caller's.

namespace penstock {

CheckpointWriter::CheckpointWriter(Checkpoints& checkpoints)
    : checkpoints_(checkpoints),
      thread_({.name = "checkpoint", .body = [this](int) {
                 while (std::optional<Work> work = begun_.pop())
                   write(std::move(*work));
               }}) {}

CheckpointWriter::~CheckpointWriter() {
  begun_.close();
  thread_.join();
  try {
    check();
  } catch (...) {
    log_exception(LogLevel::warning, "writing a checkpoint");
  }
}

void CheckpointWriter::begin(SavedState state,
                             std::optional<ModelState> model) {
  {
    Lock lock(mutex_);
    PENSTOCK_ASSERT(!busy_, "one checkpoint is written at a time");
    busy_ = true;
  }
  charge_.change_to(model ? model->memory.size() : 0);
  begun_.push({.state = std::move(state), .model = std::move(model)});
}

bool CheckpointWriter::busy() const {
  Lock lock(mutex_);
  return busy_;
}

void CheckpointWriter::wait() {
  {
    Lock lock(mutex_);
    while (busy_) written_.wait(mutex_);
  }
  check();
}

void CheckpointWriter::check() {
  std::exception_ptr error;
  {
    Lock lock(mutex_);
    if (busy_) return;
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

// `busy_` is cleared last, under the mutex: whoever sees false under the mutex
// also sees spare_ and writing_, which have no lock of their own.
void CheckpointWriter::write(Work work) noexcept {
  std::exception_ptr error;
  const Nanoseconds start = wall_clock().now();
  try {
    checkpoints_.save(std::move(work.state),
                      work.model ? &*work.model : nullptr);
  } catch (...) {
    error = std::current_exception();
  }
  writing_ += wall_clock().now() - start;
  if (work.model) spare_ = std::move(work.model->memory);
  Lock lock(mutex_);
  error_ = error;
  busy_ = false;
  written_.notify_all();
}

}  // namespace penstock
