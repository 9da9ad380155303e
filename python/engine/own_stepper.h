#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/session/session.h"
#include "python/engine/batch.h"
#include "python/engine/gil.h"
#include "python/engine/messages.h"

namespace penstock::python {

namespace nb = nanobind;

/// Steps that an object of Python takes (penstock._training.stepper.Stepper has
/// its methods, and its `memory` those of the steps' memory). What it raises is
/// an Error that keeps it.
///
/// Made with Python's lock; called without it, since each call takes it.
class OwnStepper final : public Stepper, private StepMemory {
 public:
  OwnStepper(std::shared_ptr<Session> session, nb::object stepper);
  ~OwnStepper() override;

  void step(const std::shared_ptr<Batch>& batch, Stream& stream,
            std::int64_t number) override;
  std::vector<double> losses(bool wait) override;
  void validate(const std::shared_ptr<Batch>& batch, Stream& stream) override;
  Validated validated() override;
  void restore(const ModelState& state) override;
  void join(RankGroup* ranks) override;

 private:
  ModelState state_in(std::vector<std::byte> memory) override;
  NamedBatch named(const std::shared_ptr<Batch>& batch) const;

  MemoryByOwner try_step(std::int64_t rows) override;
  MemoryByOwner fixed() const override { return memory_of("fixed"); }
  MemoryByOwner peak() const override { return memory_of("peak"); }
  MemoryByOwner take_peak() override { return memory_of("take_peak"); }
  bool give_way(std::int64_t step, std::int64_t rows) override;
  std::optional<std::int64_t> row_alone() const override;
  MemoryByOwner memory_of(const char* method) const;
  /// Calls Python, which uses the micro-batch in force, may change it, and may
  /// have given something up.
  template <class Work>
  auto calling(Work work);

  const std::shared_ptr<Session> session_;
  nb::object stepper_;
  nb::object step_memory_;
  RankGroup* ranks_ = nullptr;
};

/// What a call of Python raised. One of `penstock.errors` keeps its kind and
/// parts.
Error error_in_python(const nb::python_error& raised);

/// What a module's maker gets to know of the job and its rows, as JSON.
Json facts_of(const Job& job, Session& session, std::int64_t steps);
/// The same of a model that predicts, on a device. The job may lack the target,
/// which is one of `fields` all the same.
Json facts_of_predictions(const Job& job, const FittedFields& fields,
                          const Device& device);

/// The tensors of a state as Python has them: (name, dtype, shape, bytes). They
/// borrow its memory. With Python's lock.
nb::list saved_entries(const ModelState& state);

/// Calls Python with its lock, and hands over what was logged meanwhile.
template <class Work>
auto in_python(Work work) {
  GilAcquire lock;
  try {
    write_messages();
    return work();
  } catch (const nb::python_error& raised) {
    throw error_in_python(raised);
  }
}

}  // namespace penstock::python
