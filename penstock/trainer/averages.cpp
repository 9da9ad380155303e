#include "penstock/trainer/averages.h"

#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

#include "penstock/base/error.h"

namespace penstock {

Averages::Averages(const std::vector<Parameter>& parameters, double decay)
    : decay_(decay) {
  if (decay == 0) return;
  parameters_ = parameters;
  for (const Parameter& parameter : parameters) {
    weights_.push_back(parameter.value.detach());
    averages_.push_back(parameter.value.detach().clone());
  }
}

// a = decay a + (1 - decay) w, computed as a + (1 - decay) (w - a) in a few
// launches for all weights.
void Averages::update() {
  if (averages_.empty()) return;
  at::NoGradGuard no_graph;
  at::_foreach_lerp_(averages_, weights_, at::Scalar(1 - decay_));
}

// The parameters' storage is exchanged, nothing is copied: `weights_` and
// `averages_` each keep theirs, and a parameter shows one of them.
bool Averages::use(bool averages) {
  const bool before = used_;
  used_ = averages;
  if (averages != before)
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i].value.set_data(averages ? averages_[i] : weights_[i]);
  return before;
}

std::vector<Parameter> Averages::state() const {
  std::vector<Parameter> state;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    state.push_back({parameters_[i].name, averages_[i]});
  return state;
}

}  // namespace penstock
