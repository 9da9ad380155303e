#pragma once

#include <string>

#include "penstock/base/json.h"

namespace penstock {

// What people train a model for, as parts of the page of a run; each is empty
// where the report does not have it.

/// Tiles of the metrics of the last validation, beside what a constant guess
/// comes to.
std::string metric_tiles(const Json& report);
/// "val accuracy 0.983": the metric that names the run; may be empty.
std::string headline_metric(const Json& report);
/// "Best: val_loss 0.12 in epoch 4"; may be empty.
std::string best_line(const Json& report);
/// The confusion matrix, and precision and recall by class.
std::string classes_section(const Json& report);
/// The texts that a model of text wrote at its validations, the last first.
std::string texts_section(const Json& report);
/// Guesses over truths, and how far they are off; of places the distances.
std::string residuals_section(const Json& report);
/// The held-out rows that the model is most wrong about.
std::string worst_rows_section(const Json& report);

}  // namespace penstock
