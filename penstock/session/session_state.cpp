#include <algorithm>

#include "penstock/base/sha256_of.h"
#include "penstock/session/checkpoint.h"
#include "penstock/session/open_loader.h"

namespace penstock {
namespace {

constexpr std::size_t kDigits = 16;  // of a SHA-256: enough to tell apart

std::string beginning_of(Sha256& digest) {
  return digest.hex().substr(0, kDigits);
}

/// Of the rows, and of what makes tensors of them.
std::string data_digest(const Dataset& rows, const Json& recipes) {
  return sha256_of(rows.fingerprint() + recipes.dump()).substr(0, kDigits);
}

std::string order_digest(const Order& order, const Split& split, Side side) {
  Sha256 digest;
  std::string text = order_json(order, split).dump();
  digest.add(std::as_bytes(std::span(text)));
  const std::string_view name = name_of(side);
  if (side != Side::train) digest.add(std::as_bytes(std::span(name)));
  return beginning_of(digest);
}

[[noreturn]] void refuse_state(std::string code, std::string where,
                               std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = std::move(code),
                                   .what = "cannot continue from the state",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

}  // namespace

Position Session::first_position() {
  if (!options_.state) return {};
  check_state_of_run(*options_.state);
  steps_before_ = options_.state->steps_taken;
  return options_.state->position;
}

void Session::check_state_of_run(const SavedState& state) const {
  if (options_.side != Side::train)
    refuse_state("resume.other_order", "state",
                 "the state belongs to the training rows of a run",
                 "open the job's side \"train\"");
  check_same_fields(state, job_);
  check_goes_on(state, *rows_, order_, job_.split);
  const Json statistics = opened()->statistics();
  if (state.statistics_sha256.empty() || statistics.is_null()) return;
  std::string ours = sha256_of_statistics(statistics);
  if (ours != state.statistics_sha256)
    refuse_state("resume.other_statistics", "state.statistics_sha256",
                 "found " + ours.substr(0, kDigits) +
                     ", but the run was made with " +
                     state.statistics_sha256.substr(0, kDigits),
                 "open the loader with the statistics of the run, which are in "
                 "its statistics.json");
}

// Batches that were made ahead are dropped with the loader, and a new one
// begins at the position: nothing else depends on what was delivered before.
void Session::seek(Position at) {
  check_open();
  end_step();
  if (at.step < 0 || at.epoch < 0 || at.epoch > kLastEpoch ||
      at.step >= steps_per_epoch())
    refuse_state("resume.no_state", "the position",
                 "found epoch " + std::to_string(at.epoch) + ", step " +
                     std::to_string(at.step) + ", but an epoch has " +
                     std::to_string(steps_per_epoch()) + " steps",
                 "give a step from 0 to the last one of an epoch, and an epoch "
                 "below 2^63 - 1");
  end_loader();
  open_at(at);
}

// A few numbers, since order and draws are pure functions of them: the position
// is all that changes from step to step. The two digests name what the position
// is a position of, rows with recipes, and their order; a state that is loaded
// where either differs would continue with other samples, and is refused.
Json Session::state() const {
  Position at = position();
  Json json;
  json["v"] = 1;
  json["epoch"] = at.epoch;
  json["step"] = at.step;
  json["data"] = data_digest(*rows_, recipes_of(job_));
  json["order"] = order_digest(order_, job_.split, options_.side);
  return json;
}

/// Seeks; a session of the whole job then ends where the job does.
void Session::continue_at(Position at) {
  std::int64_t behind = 0;
  if (__builtin_mul_overflow(at.epoch, steps_per_epoch(), &behind) ||
      __builtin_add_overflow(behind, at.step, &behind))
    behind = INT64_MAX;  // of no job is so much left
  if (whole_job_)
    options_.batches =
        numbers_.steps +
        std::max<std::int64_t>(0, steps_in_all(job_, order_) - behind);
  seek(at);
}

void Session::load_state(const Json& state) {
  check_open();
  Spec spec(state, "state");
  Position at{.epoch = spec.integer("epoch", {}, 0, kLastEpoch),
              .step = spec.integer("step", {}, 0, INT64_MAX)};
  if (spec.has("fingerprint")) {  // of a run
    check_state_of_run(parse_state(state, "state"));
    return continue_at(at);
  }
  spec.integer("v", {}, 1, 1);
  std::string data = spec.text("data"), order = spec.text("order");
  spec.finish();
  const Json recipes = recipes_of(job_);
  std::string ours = data_digest(*rows_, recipes);
  if (data != ours && data == data_digest(*rows_, with_old_numbering(recipes)))
    refuse_state("resume.other_fields", "state.data", kOldNumbering,
                 "start a new run");
  if (data != ours)
    refuse_state("resume.other_data", "state.data",
                 "found " + ours + ", but the state was saved with " + data +
                     ": rows or fields were added, removed or changed",
                 "start a new run, or restore the old rows");
  if (order != order_digest(order_, job_.split, options_.side))
    refuse_state("resume.other_order", "state.order",
                 "the state was saved with another sample order; the order of "
                 "this job is " +
                     order_json(order_, job_.split).dump(),
                 "use the side, split, global batch_size, seed, shuffle, order "
                 "and tail that the state was saved with");
  continue_at(at);
}

}  // namespace penstock
