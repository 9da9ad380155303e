#pragma once

#include <cstdint>
#include <memory>

#include "penstock/session/session.h"
#include "penstock/trainer/model.h"

namespace penstock {

/// Makes a model on a device, in a turn.
using MakeModel = std::unique_ptr<Model> (*)(const ModelSpec& spec,
                                             const FittedFields& data,
                                             const at::TensorOptions& options);

/// The steps of a model: its loss goes backward, and AdamW moves the weights at
/// the rate that the schedule has for the step's number.
std::unique_ptr<Stepper> make_model_stepper(const ModelSpec& spec,
                                            const FittedFields& data,
                                            Device& device, std::int64_t steps,
                                            MakeModel make);

/// Makes predictions of a model whose weights are fixed.
std::unique_ptr<Predictor> make_model_predictor(const ModelSpec& spec,
                                                const FittedFields& data,
                                                Device& device, MakeModel make);

}  // namespace penstock
