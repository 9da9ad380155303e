#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/models/model.h"

namespace penstock {

/// Predicts one field of a table from others.
struct Tabular {
  enum class Task : std::uint8_t { by_target, regression, classification };

  std::string target;               ///< a field: a category, or one number
  std::vector<std::string> inputs;  ///< fields; none: all but the target
  Task task = Task::by_target;
  std::int64_t width = 128;  ///< of all layers; a multiple of 8
  std::int64_t depth = 3;    ///< residual blocks
  double dropout = 0.1;      ///< share of a block's numbers left out
  std::uint64_t seed = 0;    ///< of the first weights and of what is left out
};

ModelKind tabular_model();

/// The settings of a model of this kind; an internal error for another kind's.
const Tabular& tabular_of(const ModelSpec& model);

/// The fields that the model sees, in their order: those that are named, or all
/// but the target.
std::vector<Field> inputs_of(const Tabular& settings,
                             const std::vector<Field>& fields);

/// Whether the model tells classes of the target, or a number.
bool classifies(const Tabular& settings, const Field& target);

/// Numbers of a vector that stands for a class of a category with so many:
/// twice their square root, rounded up, at most 64.
std::int64_t embedding_width(std::int64_t classes);

}  // namespace penstock
