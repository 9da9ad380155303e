#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/trainer/model_stepper.h"

namespace penstock {

/// Of a category: its classes, and whether class 0 is what is unknown.
struct Classes {
  std::int64_t count = 0;
  bool unknown = false;
};
/// nullopt: the field is no category.
std::optional<Classes> classes_of(const TableDataset& data, const Field& field);

/// What a model is to tell.
struct Target {
  std::string name;
  std::int64_t classes = 0;      ///< 0: a number
  std::int64_t first_class = 0;  ///< 1: class 0 is unknown, and no truth
  bool masked = false;           ///< NAME_mask says where there is a truth
  double unit = 1;               ///< what 1 is in the target's own unit
};

/// The field of that name. Throws Error(request), code model.no_field.
const Field& target_field(const std::string& name, const TableDataset& data);
/// A category. Throws Error(request), code model.one_class, where the train
/// rows have less than two classes.
Target target_of_classes(const Field& field, const Classes& classes,
                         const TableDataset& data);

/// What the rows of a batch are: a class from 0 or a number, and what it
/// counts.
struct Truth {
  at::Tensor value;   // [rows], int64 or float32
  at::Tensor weight;  // [rows], float32
};
Truth truth_of(const Batch& batch, const Target& target);

/// Cross entropy, [rows]: `answers`: [rows, classes], `truth`: int64 [rows];
/// `smoothing`: the share that is given to all classes alike.
at::Tensor class_losses(const at::Tensor& answers, const at::Tensor& truth,
                        double smoothing);

}  // namespace penstock
