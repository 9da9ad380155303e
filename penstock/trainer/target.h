#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/trainer/model.h"
#include "penstock/trainer/outcome_details.h"

namespace penstock {

/// Of a category: its known classes, and whether there is an unknown one behind
/// them.
struct Classes {
  std::int64_t count = 0;
  bool unknown = false;
};
/// nullopt: the field is not a category.
std::optional<Classes> classes_of(const FittedFields& data, const Field& field);
/// Whether the field is a `multi_hot`: a row has any number of its classes.
bool has_labels(const Field& field);

/// What a model is to tell.
struct Target {
  std::string name;
  std::int64_t classes = 0;  ///< that are known; 0: a number
  bool unknown = false;      ///< class `classes` is unknown: not a truth
  bool masked = false;       ///< NAME_mask says where there is a truth
  Scale scale = {};          ///< of a number: what undoes its standardisation
  bool log1p = false;        ///< of a number: it is the log1p of the column's
  bool many = false;         ///< a row has any number of the classes: labels
  /// How much each class counts while learning; empty: all the same. Of labels,
  /// how much a row that has it counts beside one that has not.
  std::vector<float> class_weights = {};
  ConstantGuess constant = {};
};

/// The field of that name. Throws Error(request), code model.no_field.
const Field& target_field(const std::string& name, const FittedFields& data);
/// A category. Throws Error(request), code model.one_class, where the train
/// rows have less than two classes.
Target target_of_classes(const Field& field, const Classes& classes,
                         const FittedFields& data);
/// What a classifier tells: a category, or the labels of a multi_hot field, of
/// which one is enough; with `balanced`, weighed by how often each class comes
/// among the train rows.
Target target_of_classifier(const std::string& name, const FittedFields& data,
                            bool balanced);

/// What makes every class count as much as any other: rows / (classes x its
/// rows), as scikit-learn's "balanced" has it; 1 for one without a row.
std::vector<float> balanced_weights(std::span<const std::int64_t> counts);
/// What makes having a label count as much as not having it: the rows without
/// it through those with it, torch's `pos_weight`; 1 for one without a row.
std::vector<float> balanced_label_weights(std::span<const std::int64_t> counts,
                                          std::int64_t rows);

/// What a model of classes says of a row.
AnswerFacts answers_about_classes(const Target& target, const Field& field,
                                  const Json& statistics);

/// What the rows of a batch are: a class from 0 or a number, and what it
/// counts.
struct Truth {
  at::Tensor value;   // [rows], int64 or float32; of labels [rows, classes]
  at::Tensor weight;  // [rows], float32
};
Truth truth_of(const BatchRows& batch, const Target& target);

/// Cross entropy, [rows]: `answers`: [rows, classes], `truth`: int64 [rows];
/// `smoothing`: the share that is given to all classes alike; `weights`:
/// [classes], or undefined. As torch's CrossEntropyLoss has it before the mean,
/// which is through the sum of the weights of the true classes.
at::Tensor class_losses(const at::Tensor& answers, const at::Tensor& truth,
                        double smoothing, const at::Tensor& weights = {});

}  // namespace penstock
