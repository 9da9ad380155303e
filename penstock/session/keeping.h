#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/job/job.h"
#include "penstock/session/state.h"

namespace penstock {

/// Whether the run keeps the weights of its best validation, and those after
/// its last step. `held_out`: whether it has rows to validate.
bool keeps_best(const Job& job, bool held_out);
bool keeps_last(const Job& job, bool held_out);

/// Throws Error(request), code train.metric, where the classes of the model's
/// target show that no validation can measure the job's metric: "auc" needs two
/// classes, "top5_accuracy" more than five. To be called before the first step.
void check_metric_of_rows(const Job& job, const Dataset& rows);

/// Takes a validation after `state.steps_taken` steps into account: counts it,
/// or replaces `state.best`, and then returns true. `measured`: by name,
/// "val_loss" and others; empty where no row has a truth. What is missing then,
/// or null, is not better than anything. Throws Error(request), code
/// train.metric, where it has others, but not the metric of the job.
bool is_best(const Job& job, const Json& measured, std::int64_t epoch,
             SavedState& state);

/// Forgets what a run that is resumed had for its best where this job compares
/// by another metric, or keeps weights that the run did not keep. What was
/// forgotten and why, as a line for people; empty where nothing was.
std::string forget_other_best(const Job& job, SavedState& state);

/// The metrics of a validation as reports name them: without "val_".
Json reported_measures(const Json& measured);

/// "val accuracy 0.93, val auc n/a": what a model measured, but for the number
/// of the name `left_out`; empty where that is nothing.
std::string measures_text(const Json& measured, std::string_view left_out);

/// "val loss 0.1234 after epoch 3, step 120": epochs counted from 1.
std::string text_of(const Best& best);
/// "the last 3 validations were not better than val loss 0.1234 after ...".
std::string patience_text(const Best& best);

}  // namespace penstock
