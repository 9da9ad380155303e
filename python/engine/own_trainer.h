#pragma once

#include <nanobind/nanobind.h>

#include "penstock/run/run.h"

namespace penstock::python {

/// What the engine asks of torch: `maker`, an object of
/// penstock._training.maker.Maker, makes the calls, and must outlive what is
/// returned, which can make no stepper and no predictor yet.
///
/// With Python's lock; the calls take it.
OwnTrainer trainer_of_torch(const nanobind::object& maker);

}  // namespace penstock::python
