#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What a model said of a held-out row, in the float32 that it computes in:
/// there may be as many as rows that are predicted.
struct Outcome {
  float loss = 0;
  float truth = 0;  ///< a class, from 0, or a number
  float guess = 0;
  float score = 0;   ///< of two classes: how much the second is preferred
  float before = 0;  ///< classes that were held more likely than the truth
  std::int64_t sample = -1;  ///< its id
};

/// "val_loss", "val_accuracy" and "val_macro_f1": the mean of F1 over the
/// classes that some row has or was said to have. Of two classes also
/// "val_auc": how often a row of the second has a higher score than one of the
/// first, a tie counting half; null where one of them has no row. Empty without
/// a row.
Json class_metrics(std::span<const Outcome> rows, std::int64_t classes);

/// "val_balanced_accuracy": the mean over the classes that some row has of how
/// many of their rows are right, and "val_least_recall", the least of these.
/// Empty without a row.
Json balance_metrics(std::span<const Outcome> rows, std::int64_t classes);

/// The share of rows whose truth is among the `first` likeliest classes.
double top_share(std::span<const Outcome> rows, std::int64_t first);

/// What a model said of the labels of held-out rows.
struct LabelOutcomes {
  std::int64_t labels = 0;
  std::vector<std::int64_t> samples = {};  // the id of each row
  std::vector<double> losses = {};         // of each row
  std::vector<bool> truths = {};           // [rows, labels]
  std::vector<double> scores = {};  // [rows, labels]; above 0: said to be there

  std::int64_t rows() const { return std::ssize(losses); }
};

/// "val_loss"; "val_exact_match", the share of rows all of whose labels are
/// right; "val_micro_f1", F1 of all labels together, and "val_macro_f1", its
/// mean over the labels that some row has or was said to have (1 if none
/// exists); "val_map", the mean over the labels that some row has of their
/// average precision, as scikit-learn's average_precision_score has it, null
/// where no row has any. Empty without a row.
Json label_metrics(const LabelOutcomes& outcomes);

/// "val_loss", "val_rmse" and "val_mae"; the last two in the target's own unit,
/// of which `unit` is one of the outcomes' numbers. Empty without a row.
Json number_metrics(std::span<const Outcome> rows, double unit);

}  // namespace penstock
