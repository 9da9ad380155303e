#include "penstock/dataset/mixed/prepare_mixed.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "penstock/base/shown.h"
#include "penstock/dataset/packed/packed_dataset.h"
#include "penstock/dataset/prepare_dataset.h"
#include "penstock/dataset/table/preparation_plan.h"
#include "penstock/dataset/table/table_preparation.h"

// Sources of which no field is fitted together with another's are prepared one
// after the other. The others are scanned first, all of them, then fitted, and
// then packed. What a store of such rows holds follows from all sources that
// they are fitted with, so these are part of its name; and where one source's
// rows are in a store, the statistics there are those of all.

namespace penstock {
namespace {

using Options = std::vector<MixedSourceOptions>;
using Sources = std::vector<BoundSource>;

void check_fields(const Options& options) {
  const std::vector<Field>& first = options.front().rows.fields;
  for (std::size_t s = 1; s < options.size(); ++s) {
    const std::vector<Field>& fields = options[s].rows.fields;
    if (!std::ranges::equal(fields, first, {}, &Field::name, &Field::name))
      refuse_mixing("mixing.fields", s,
                    "the fields of the source are " +
                        quoted_list(fields, &Field::name) +
                        ", but those of sources[0] are " +
                        quoted_list(first, &Field::name),
                    "give all sources fields with the same names");
  }
  for (std::size_t s = 0; s < options.size(); ++s)
    if (packing_of(options[s].rows))
      refuse_mixing("packing.mixed", s,
                    "the samples of the source are packed, and packed samples "
                    "cannot be mixed with others",
                    "combine the sources into one (\"kind\": "
                    "\"concatenated\"), or set \"pack\": \"none\"");
  std::vector<std::vector<Output>> tensors;
  for (const MixedSourceOptions& one : options)
    tensors.push_back(outputs_of(one.rows.fields));
  check_same_tensors(tensors);
}

void check_cache(const Options& options, const Device& device) {
  const TableDatasetOptions& rows = options.front().rows;
  const bool asked = rows.cache == "device" || rows.cache == "pinned" ||
                     rows.budgets.device.value_or(0) > 0 ||
                     rows.budgets.pinned.value_or(0) > 0;
  if (!asked || device.memory_kind() == MemoryKind::cpu) return;
  throw Error(ErrorKind::request,
              {.code = "mixing.cache",
               .what = "cannot keep the rows of a mixture on the device",
               .where = "loader.cache",
               .why = "batches of several sources are assembled on the host "
                      "and then copied",
               .next = "use \"auto\", \"ram\" or \"disk\""});
}

/// Which sources share the settings of a field that is fitted, by field and
/// settings; those with others to share with.
struct SharedFit {
  std::size_t field = 0;
  std::vector<std::size_t> sources;
};

std::vector<SharedFit> shared_fits(const Options& options,
                                   const Sources& sources) {
  std::vector<SharedFit> fits;
  std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>> found;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::vector<Field>& fields = options[s].rows.fields;
    for (std::size_t f = 0; f < fields.size(); ++f)
      if (!sources[s].fields[f]->unfitted())
        found[{f, fields[f].kind->facts().recipe.dump()}].push_back(s);
  }
  for (auto& [key, in] : found)
    if (in.size() > 1) fits.push_back({key.first, std::move(in)});
  return fits;
}

/// Says of each source that takes part in a fit what it is fitted with.
void note_fits(const std::vector<SharedFit>& fits, const Sources& sources,
               Options& options) {
  std::map<std::size_t, Json> with;  // by source
  for (const SharedFit& fit : fits)
    for (std::size_t s : fit.sources) {
      Json shared;
      shared["field"] = options[s].rows.fields[fit.field].name;
      for (std::size_t other : fit.sources)
        shared["sources"].push_back(static_cast<std::int64_t>(other));
      with[s]["fields"].push_back(std::move(shared));
    }
  Json all(Json::Array{});
  bool known = true;
  for (auto& [s, shared] : with) {
    TableDatasetOptions plain = options[s].rows;
    plain.fitted_with = {};
    all.push_back(table_store(plain, *sources[s].source, false).recipe);
    known &= says_when_it_changes(plain.source, *sources[s].source);
  }
  for (auto& [s, shared] : with) {
    shared["source"] = static_cast<std::int64_t>(s);
    shared["recipes"] = all;
    options[s].rows.fitted_with = std::move(shared);
    options[s].rows.fitted_with_unknown = !known;
  }
}

/// What later sources may still take of the budgets.
void take_from(TierBudgets& budgets, const Dataset& rows,
               const TableDatasetOptions& options) {
  std::size_t row_bytes = 0;
  for (const Output& output : rows.outputs()) row_bytes += output.bytes();
  const std::size_t least =
      static_cast<std::size_t>(options.batch_rows) * row_bytes;
  auto take = [&](std::optional<std::size_t>& budget, std::size_t bytes) {
    if (!budget) return;
    *budget -= std::min(*budget, bytes);
    if (*budget < least) budget = 0;
  };
  for (const TierPlan::Line& line : rows.plan().lines) {
    if (!line.chosen) continue;
    if (line.tier == Tier::device) take(budgets.device, line.rows_bytes);
    if (line.tier == Tier::pinned) take(budgets.pinned, line.rows_bytes);
    if (line.tier == Tier::ram) take(budgets.ram, line.rows_bytes);
    if (line.tier == Tier::disk) take(budgets.disk, line.disk_bytes);
  }
}

/// Prepares the sources of fits that several share.
class Together {
 public:
  Together(std::vector<SharedFit> fits, Options& options, Device& device)
      : fits_(std::move(fits)),
        options_(options),
        device_(device),
        scans_(options.size()) {}

  bool takes(std::size_t source) const {
    return std::ranges::any_of(fits_, [&](const SharedFit& fit) {
      return std::ranges::count(fit.sources, source) > 0;
    });
  }

  /// What it keeps already, of a store, is taken from `budgets`.
  void scan(std::size_t source, BoundSource opened, TierBudgets& budgets) {
    options_[source].rows.budgets = budgets;
    options_[source].rows.preparation = scanned_for(source);
    scans_[source] = std::make_unique<TablePreparation>(
        options_[source].rows, std::move(opened), device_);
    if (const TableDataset* stored = scans_[source]->stored())
      take_from(budgets, *stored, options_[source].rows);
  }

  void fit() {
    statistics_.resize(scans_.size());
    for (std::size_t s = 0; s < scans_.size(); ++s)
      if (scans_[s] != nullptr) statistics_[s] = scans_[s]->known_statistics();
    for (std::size_t s = 0; s < scans_.size(); ++s)
      if (scans_[s] != nullptr && statistics_[s].empty()) missing_.push_back(s);
    for (std::size_t s : missing_)
      statistics_[s].resize(options_[s].rows.fields.size());
    std::vector<std::vector<bool>> done(scans_.size());
    for (std::size_t s : missing_)
      done[s].resize(options_[s].rows.fields.size());
    for (const SharedFit& shared : fits_) {
      const Json found = found_of(shared);
      for (std::size_t s : shared.sources)
        if (is_missing(s)) {
          statistics_[s][shared.field] = found;
          done[s][shared.field] = true;
        }
    }
    for (std::size_t s : missing_)
      for (std::size_t f = 0; f < done[s].size(); ++f)
        if (!done[s][f]) statistics_[s][f] = found_of({f, {s}});
  }

  std::shared_ptr<const Dataset> finish(std::size_t source,
                                        TierBudgets& budgets) {
    const bool stored = scans_[source]->stored() != nullptr;
    auto rows = scans_[source]->finish(std::move(statistics_[source]), budgets);
    scans_[source].reset();
    if (!stored) take_from(budgets, *rows, options_[source].rows);
    return rows;
  }

 private:
  std::shared_ptr<const PreparationPlan> scanned_for(std::size_t source) const {
    const auto fit = std::ranges::find_if(fits_, [&](const SharedFit& shared) {
      return std::ranges::count(shared.sources, source) > 0;
    });
    return std::make_shared<const PreparationPlan>(PreparationPlan{
        .reason = "field '" + options_[source].rows.fields[fit->field].name +
                  "' is fitted over several sources"});
  }

  bool is_missing(std::size_t source) const {
    return std::ranges::count(missing_, source) > 0;
  }

  /// Of a store, which holds those of all, or found over all.
  Json found_of(const SharedFit& shared) {
    std::vector<FitRows> rows;
    for (std::size_t s : shared.sources) {
      if (!is_missing(s)) return statistics_[s][shared.field];
      rows.push_back(scans_[s]->fit_rows());
    }
    return fit_together(shared.field, rows);
  }

  const std::vector<SharedFit> fits_;
  Options& options_;
  Device& device_;
  std::vector<std::unique_ptr<TablePreparation>> scans_;  // by source
  std::vector<std::vector<Json>> statistics_;             // by source and field
  std::vector<std::size_t> missing_;  // sources without statistics
};

/// Classes are numbers: they must mean the same in all sources.
void check_classes(const std::vector<MixedRows>& rows, const Options& options) {
  const std::vector<Field>& fields = options.front().rows.fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Json* first = nullptr;
    for (std::size_t s = 0; s < rows.size(); ++s) {
      const DatasetFacts& facts = rows[s].rows->facts();
      if (facts.scan == nullptr) continue;
      const Json& found = facts.fitted->statistics_of(fields[f].name);
      const Json* classes = found.is_object() ? found.find("classes") : nullptr;
      if (classes == nullptr) continue;
      if (first == nullptr) first = classes;
      if (*classes != *first)
        refuse_mixing(
            "mixing.classes", s,
            "field '" + fields[f].name + "' has the classes " +
                classes->dump().substr(0, 200) + ", but another source has " +
                first->dump().substr(0, 200),
            "give the field the same settings in all sources and a column of "
            "the same name (use 'source.query' or 'columns' to rename it), so "
            "that its classes are found over all sources");
    }
  }
}

/// What decides the sides of a source's rows, beside its values.
Json about(const TableDatasetOptions& options) {
  Json json;
  json["train"] = options.split.train;
  json["val"] = options.split.val;
  if (options.split.test > 0) json["test"] = options.split.test;
  json["seed"] = std::to_string(options.split.seed);
  json["by"] = options.split.by;
  if (options.split.folds > 0) json["fold"] = fold_json(options.split);
  json["share"] = options.split.share;
  json["most"] = options.split.most;
  return json;
}

}  // namespace

void note_what_fits(Options& options, const Sources& sources) {
  check_fields(options);
  note_fits(shared_fits(options, sources), sources, options);
}

std::shared_ptr<const Dataset> prepare_mixed(
    Options options, std::vector<std::unique_ptr<Source>> opened,
    Exhausted exhausted, Device& device) {
  check_fields(options);
  check_cache(options, device);
  Sources sources;
  for (std::size_t s = 0; s < opened.size(); ++s) {
    options[s].rows.batches_on_host = true;
    sources.push_back(
        bound_source(options[s].rows.fields, std::move(opened[s])));
  }
  std::vector<SharedFit> fits = shared_fits(options, sources);
  note_fits(fits, sources, options);
  Together together(std::move(fits), options, device);
  TierBudgets budgets = options.front().rows.budgets;
  for (std::size_t s = 0; s < sources.size(); ++s)
    if (together.takes(s)) together.scan(s, std::move(sources[s]), budgets);
  together.fit();
  std::vector<MixedRows> rows;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    rows.push_back(
        {.weight = options[s].weight, .about = about(options[s].rows)});
    if (together.takes(s)) {
      rows.back().rows = together.finish(s, budgets);
      continue;
    }
    options[s].rows.budgets = budgets;
    rows.back().rows =
        prepare_dataset(options[s].rows, std::move(sources[s]), device);
    take_from(budgets, *rows.back().rows, options[s].rows);
  }
  if (!options.front().rows.plan_only) check_classes(rows, options);
  return std::make_shared<MixedDataset>(std::move(rows), exhausted);
}

}  // namespace penstock
