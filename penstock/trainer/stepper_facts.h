#pragma once

#include <string>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/model_facts.h"

namespace penstock {

/// The settings of `train` that not every model has, as this one follows them.
/// `no_graphs`: why there are no graphs; empty where there are.
std::vector<SwitchInForce> switches_in_force(const Learning& learning,
                                             const ModelFacts& model,
                                             bool on_gpu,
                                             const std::string& no_graphs);

/// StepperFacts::about. `found`: by the model, in its first batch.
Json about_model(const ModelFacts& model, const Json& found);

/// Throws Error(request), code resume.other_model, where a checkpoint's model
/// is another one; the number of threads may differ, which is logged.
void check_description(const Json& ours, const Json& found);

/// Bytes of these tensors.
std::int64_t bytes_of(const std::vector<Parameter>& tensors);

}  // namespace penstock
