#include "penstock/session/state.h"

#include <limits>

#include "penstock/session/difference.h"

namespace penstock {
namespace {

// Steps of data: so many that those of a run may follow.
constexpr std::int64_t kFarthest = INT64_MAX / 2;

[[noreturn]] void refuse(std::string code, std::string where, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = std::move(code),
                                   .what = "cannot resume the run",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

std::optional<SavedState> state_before(const Json& json) {
  const Json* before = json.find("before");
  if (before == nullptr) return std::nullopt;
  try {
    return parse_state(*before, "before");
  } catch (const Error&) {
    return std::nullopt;  // who needs it says what is wrong with the newest
  }
}

/// As much of a saved order as the length of an epoch depends on.
Order lengths_of(const Json& saved) {
  Spec spec(saved, "order");
  const std::string tail = spec.text("tail");
  return {.samples = spec.integer("samples", {}, 1, INT64_MAX),
          .batch_size = spec.integer("batch_size", {}, 1, INT64_MAX),
          .tail = tail == "drop" ? Tail::drop : Tail::exact};
}

Best parse_best(Spec spec) {
  Best best;
  best.epoch = spec.integer("epoch", {}, 0, kMostCounted);
  best.step = spec.integer("step", {}, 0, kMostCounted);
  best.metric = spec.text("metric");
  constexpr double kLargest = std::numeric_limits<double>::max();
  best.value = spec.number("value", {}, -kLargest, kLargest);
  best.sha256 = spec.text("sha256", "");
  best.since = spec.integer("since", {}, 0, kMostCounted);
  spec.finish();
  return best;
}

Json json_of(const Best& best) {
  Json json;
  json["epoch"] = best.epoch;
  json["step"] = best.step;
  json["metric"] = best.metric;
  json["value"] = best.value;
  if (!best.sha256.empty()) json["sha256"] = best.sha256;
  json["since"] = best.since;
  return json;
}

}  // namespace

SavedState parse_state(const Json& json, const std::string& name) {
  SavedState state;
  Spec spec(json, name);
  state.position.epoch = spec.integer("epoch", {}, 0, kMostCounted);
  state.position.step = spec.integer("step", {}, 0, kMostCounted);
  state.steps_taken = spec.integer("steps_taken", {}, 0, kMostCounted);
  state.fingerprint = spec.text("fingerprint");
  if (const Json* order = spec.raw("order")) state.order = *order;
  if (const Json* fields = spec.raw("fields")) state.fields = *fields;
  state.checkpoint = spec.text("checkpoint", "");
  state.checkpoint_sha256 = spec.text("checkpoint_sha256", "");
  state.statistics_sha256 = spec.text("statistics_sha256", "");
  if (spec.has("to_validate"))
    state.to_validate = spec.integer("to_validate", {}, 0, kMostCounted);
  if (spec.has("best")) state.best = parse_best(spec.section("best"));
  spec.raw("before");
  spec.finish();
  if (state.checkpoint.find('/') != std::string::npos)
    spec.refuse("checkpoint", "the path leads outside the run's folder",
                "name a file in the run's folder, without a path");
  return state;
}

Json json_of(const SavedState& state) {
  Json json;
  json["epoch"] = state.position.epoch;
  json["step"] = state.position.step;
  json["steps_taken"] = state.steps_taken;
  json["fingerprint"] = state.fingerprint;
  json["order"] = state.order;
  json["fields"] = state.fields;
  if (!state.checkpoint.empty()) {
    json["checkpoint"] = state.checkpoint;
    json["checkpoint_sha256"] = state.checkpoint_sha256;
  }
  if (!state.statistics_sha256.empty())
    json["statistics_sha256"] = state.statistics_sha256;
  if (state.to_validate) json["to_validate"] = *state.to_validate;
  if (state.best) json["best"] = json_of(*state.best);
  return json;
}

SavedStates read_states(const std::string& run_folder) {
  std::string path = run_folder + "/state.json";
  try {
    Json json = Json::parse(real_files().read(path), path);
    return {.newest = parse_state(json, ""), .before = state_before(json)};
  } catch (const Error& error) {
    refuse("resume.no_state", path,
           error.parts().where == path
               ? error.parts().why
               : error.parts().where + ": " + error.parts().why,
           "name the folder of a run that was interrupted, or start a new run");
  }
}

Json order_json(const Order& order, const Split& split) {
  Json json;
  json["samples"] = order.samples;
  json["seed"] = static_cast<std::int64_t>(order.seed);
  json["shuffle"] = order.shuffle;
  if (order.pages) {
    json["page"] = order.pages.page;
    json["window"] = order.pages.window;
  }
  if (order.groups != nullptr)
    json["group_by_length"] =
        order.groups->how() == LengthGroups::How::hf ? "hf" : "buckets";
  if (order.draws != nullptr)
    json["weights"] = std::to_string(order.draws->digest());
  if (order.mixture != nullptr) {
    for (std::size_t s = 0; s < order.mixture->sources(); ++s) {
      Json source;
      source["samples"] = order.mixture->shares()[s].samples;
      source["taken"] = order.mixture->taken()[s];
      json["sources"].push_back(std::move(source));
    }
  }
  json["batch_size"] = order.batch_size;
  json["tail"] = order.tail == Tail::drop  ? "drop"
                 : order.tail == Tail::pad ? "pad"
                                           : "exact";
  Json& sides = json["split"];
  sides["train"] = split.train;
  sides["val"] = split.val;
  if (split.test > 0) sides["test"] = split.test;
  sides["seed"] = static_cast<std::int64_t>(split.seed);
  sides["by"] = split.by;
  if (split.folds > 0) sides["fold"] = fold_json(split);
  return json;
}

bool out_of_patience(const SavedState& state, const Job& job) {
  return job.training.patience && state.best && !state.to_validate &&
         state.best->since >= *job.training.patience;
}

bool has_ended(const SavedState& state, const Job& job) {
  if (state.fingerprint.empty()) return false;
  if (out_of_patience(state, job)) return true;
  const std::int64_t left =
      steps_in_all(job, lengths_of(state.order)) - state.steps_taken;
  return left < 0 || (left == 0 && !state.to_validate);
}

void skip_steps(SavedState& state, std::int64_t steps, const Job& job) {
  auto cannot = [&](std::string why, std::string next) {
    refuse("resume.skip", "--skip " + std::to_string(steps), std::move(why),
           std::move(next));
  };
  if (state.fingerprint.empty())
    cannot("the run had not started", "leave --skip out");
  const Order order = lengths_of(state.order);
  const std::int64_t in_all = steps_in_all(job, order);
  if (state.steps_taken >= in_all)
    cannot("the run has no steps left", in_all == job.training.max_steps
                                            ? "raise train.max_steps"
                                            : "raise train.epochs");
  if (out_of_patience(state, job))
    cannot("the run has ended, out of patience", "raise train.patience");
  const std::int64_t epoch = steps_per_epoch(order);
  const std::string why =
      "the run is at step " + std::to_string(state.position.step) +
      " of epoch " + std::to_string(state.position.epoch) +
      ", and an epoch has " + std::to_string(epoch) + " steps";
  std::int64_t at = 0;
  const bool too_large =
      __builtin_mul_overflow(state.position.epoch, epoch, &at) ||
      __builtin_add_overflow(at, state.position.step, &at) ||
      __builtin_add_overflow(at, steps, &at) || at > kFarthest;
  if (steps > 0 && too_large)
    cannot(why, "skip fewer than " + std::to_string(kFarthest) + " steps");
  if (too_large || at < 0)
    cannot(why, "go back no further than step 0 of epoch 0");
  state.position = {.epoch = at / epoch, .step = at % epoch};
}

namespace {

std::string shown(const Json& value) {
  return value.is_null() ? "nothing" : value.dump();
}

/// The split first: with another one the number of samples differs, too.
std::optional<Difference> other_order(const Json& found, const Json& made) {
  const Json *ours = found.find("split"), *theirs = made.find("split");
  if (ours != nullptr && theirs != nullptr)
    if (auto other = first_difference(*ours, *theirs, "split")) return other;
  return first_difference(found, made, "loader");
}

}  // namespace

Json with_old_numbering(const Json& recipes) {
  if (!recipes.is_object()) return recipes;
  Json old{Json::Object{}};
  for (const auto& [name, value] : recipes.object())
    old[name] = name == "unknown" && value == Json("last")
                    ? Json("class")
                    : with_old_numbering(value);
  return old;
}

void check_same_fields(const SavedState& state, const Job& job) {
  if (state.fields.is_null()) return;
  const Json ours = recipes_of(job);
  auto other = first_difference(ours, state.fields, "fields");
  if (!other) return;
  if (with_old_numbering(ours) == state.fields)
    refuse("resume.other_fields", other->path, kOldNumbering,
           "start a new run");
  if (other->path.starts_with("fields.loader.operations"))
    other->path = other->path.substr(std::string("fields.").size());
  refuse("resume.other_fields", other->path,
         "found " + shown(other->found) + ", but the run was made with " +
             shown(other->made),
         "resume without changing the fields, or start a new run");
}

void check_reachable(Position at, std::int64_t each, const std::string& where) {
  std::int64_t behind = 0;
  if (!__builtin_mul_overflow(at.epoch, each, &behind) &&
      !__builtin_add_overflow(behind, at.step, &behind) &&
      behind <= kMostCounted)
    return;
  throw Error(ErrorKind::request,
              {.code = "resume.no_state",
               .what = "no run can reach this position",
               .where = where,
               .why = "found epoch " + std::to_string(at.epoch) + " and step " +
                      std::to_string(at.step) + ", expected at most " +
                      std::to_string(kMostCounted) + " steps in total, with " +
                      std::to_string(each) + " in each epoch",
               .next = "use a saved state, or an earlier epoch"});
}

void check_goes_on(const SavedState& state, const Dataset& rows,
                   const Order& order, const Split& split) {
  if (state.fingerprint.empty()) return;  // it had not begun
  if (state.fingerprint != rows.fingerprint())
    refuse("resume.other_data", "dataset.fingerprint",
           "found " + rows.fingerprint().substr(0, 12) +
               ", but the run was made with " +
               state.fingerprint.substr(0, 12) +
               ": rows were added, removed or changed",
           "start a new run, or restore the old rows");
  if (auto other = other_order(order_json(order, split), state.order))
    refuse("resume.other_order", other->path,
           "found " + shown(other->found) + ", but the run was made with " +
               shown(other->made),
           "resume without changing split, batch_size, seed, shuffle, order, "
           "weights, balance, limit, tail, or the sources and their weights");
  check_reachable(state.position, steps_per_epoch(order), "state.json");
  if (state.position.step > 0 && state.position.step >= steps_per_epoch(order))
    refuse("resume.no_state", "state.json",
           "found step " + std::to_string(state.position.step) +
               ", and an epoch has " + std::to_string(steps_per_epoch(order)),
           "the file is damaged: start a new run");
}

}  // namespace penstock
