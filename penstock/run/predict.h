#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/run/trained_run.h"
#include "penstock/session/session.h"
#include "penstock/sources/sources.h"

namespace penstock {

struct PredictOptions {
  /// The rows: a `source` section, or a URI as `penstock peek` takes it.
  Json source;
  /// True: rows without the target are refused, as measures need it.
  bool measures = false;
  /// Set to end by an error; may be null.
  const std::atomic<bool>* stop = nullptr;
  /// Texts that are made, in a column "text"; nullopt: none are.
  std::optional<Generation> generation = {};
  /// Where predictions go, once their columns are known. Empty: nowhere.
  std::function<std::unique_ptr<TableWriter>(const std::vector<NewColumn>&)>
      open;
  /// For a run whose model is "own".
  std::optional<OwnTrainer> own;
};

/// What predictions came to.
struct Predicted {
  std::int64_t rows = 0;         ///< that were predicted
  std::int64_t bad = 0;          ///< that were left out
  std::vector<BadRow> bad_rows;  ///< the first of these
  /// "loss" and the rest, as the run's report has them of the held-out rows;
  /// empty where the rows have no target.
  Json metrics = Json(Json::Object{});
  /// Why rows that have the target were not measured: one of them has no valid
  /// one. Empty: there is no such row.
  std::string not_measured = {};
  int rank = 0;  ///< of this process; only rank 0 has all of the above
};

/// {"rows", "bad", "metrics", "out"}; "metrics" where all rows have a valid
/// target, "not_measured" with the reason where some do not, and "out" is null
/// where no file was written.
Json json_of(const Predicted& predicted, const std::string& out);
/// For people: why no row was measured, and the first rows that were left out,
/// a line each.
std::vector<std::string> notes_of(const Predicted& predicted);
/// All of it for people: "2,000 rows predicted, 3 left out: answers.csv".
std::string summary_of(const Predicted& predicted, const std::string& out);
/// The measures, a line each.
std::string text_of_measures(const Predicted& predicted);

/// Predicts all rows of a source in their order, by the fields, statistics and
/// weights of a run. Memory is bounded, whatever the number of rows. Each row
/// is written with its key: "key"; for classes "prediction" and "p_CLASS" for
/// each; for numbers a column with the target's name.
///
/// One of several ranks, as the environment describes them, joins the others.
/// All read the source, and each predicts a part of the rows. Rank 0 alone
/// opens and writes the table.
///
/// Throws what reading and preparing rows throw, Error(request) for weights of
/// another model (predict.other_model), and of several ranks what RankGroup
/// throws, and "ranks.data" or "ranks.settings" where they have other rows or
/// weights.
Predicted predict(const TrainedRun& run, const PredictOptions& options);

}  // namespace penstock
