#include "python/engine/sampling.h"

#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/sampling/sampling.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

std::int64_t batches_of(std::int64_t samples, std::int64_t batch_size,
                        bool drop_last) {
  if (drop_last && samples < batch_size) return 0;
  return steps_per_epoch({.samples = samples,
                          .batch_size = batch_size,
                          .tail = drop_last ? Tail::drop : Tail::exact});
}

/// An order whose last batch is left out or short. Unlike the engine's own
/// loaders it may have no batch at all, as torch's loader.
class BatchOrder {
 public:
  BatchOrder(std::int64_t samples, std::int64_t batch_size, std::uint64_t seed,
             bool shuffle, bool drop_last)
      : order_{.samples = samples,
               .seed = seed,
               .shuffle = shuffle,
               .batch_size = batch_size,
               .tail = Tail::exact},
        steps_(batches_of(samples, batch_size, drop_last)) {}

  std::int64_t steps() const { return steps_; }
  std::int64_t samples() const { return order_.samples; }

  /// The samples of one batch, also of a short one that steps() leaves out.
  std::vector<std::int64_t> ids(std::int64_t epoch, std::int64_t step) {
    if (step < 0 || step >= steps_per_epoch(order_))
      throw std::out_of_range("an epoch has no such step");
    plan_step(order_, Rank(), {.epoch = epoch, .step = step}, plan_);
    std::vector<std::int64_t> ids;
    ids.reserve(plan_.ranges.size());
    for (const SampleRange& range : plan_.ranges) ids.push_back(range.sample);
    return ids;
  }

 private:
  const Order order_;
  const std::int64_t steps_;
  Plan plan_;
};

/// The first number of each of `count` streams, of operation and the next ones.
std::vector<std::uint64_t> first_draws(std::uint64_t seed, std::uint64_t epoch,
                                       std::uint64_t sample,
                                       std::uint64_t operation, int count) {
  std::vector<std::uint64_t> draws;
  for (std::uint64_t at = 0; at < static_cast<std::uint64_t>(count); ++at)
    draws.push_back(Random(seed, epoch, sample, operation + at).next());
  return draws;
}

}  // namespace

void bind_sampling(nb::module_& module) {
  nb::class_<BatchOrder>(module, "Order",
                         "Which samples are in which batch of which epoch.")
      .def(nb::init<std::int64_t, std::int64_t, std::uint64_t, bool, bool>(),
           nb::arg("samples"), nb::arg("batch_size"), nb::arg("seed") = 0,
           nb::arg("shuffle") = false, nb::arg("drop_last") = false)
      .def_prop_ro("samples", &BatchOrder::samples)
      .def("steps", &BatchOrder::steps)
      .def("ids", &BatchOrder::ids, nb::arg("epoch"), nb::arg("step"));
  nb::class_<Random>(module, "Random", "Numbers that depend on this key alone.")
      .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t,
                    std::uint64_t>(),
           nb::arg("seed"), nb::arg("epoch"), nb::arg("sample"),
           nb::arg("operation"))
      .def("next", &Random::next)
      .def("below", &Random::below, nb::arg("n"));
  module.def("batches_of", &batches_of, nb::arg("samples"),
             nb::arg("batch_size"), nb::arg("drop_last"));
  module.def("first_draws", &first_draws, nb::arg("seed"), nb::arg("epoch"),
             nb::arg("sample"), nb::arg("operation"), nb::arg("count"));
}

}  // namespace penstock::python
