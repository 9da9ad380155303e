#pragma once

#include <cstdint>
#include <string>

#include "penstock/models/model.h"

namespace penstock {

/// A torch module of the user's, in Python.
struct OwnModel {
  std::string named;            ///< "FILE.py:NAME"
  std::string target;           ///< a field; empty: the module gives its loss
  std::string loss = "auto";    ///< of the target; "auto": by its field
  std::string compile = "off";  ///< the mode of torch.compile()
  Json arguments = Json::Object{};  ///< of the constructor, by name
  std::uint64_t seed = 0;  ///< of the first weights, and of what is drawn
};

ModelKind own_model();

/// The settings of a model of this kind; an internal error for another kind's.
const OwnModel& own_model_of(const ModelSpec& model);

}  // namespace penstock
