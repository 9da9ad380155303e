#include <algorithm>
#include <utility>

#include "penstock/run/loop.h"

// What the loop does for a process that is one of several ranks. All ranks take
// the same steps, validations and checkpoints: what could make them differ, a
// signal or a measured number, is decided by all together, in the vote of a
// step or by what rank 0 says. Rank 0 alone writes what others read.
namespace penstock {

/// One that is not the first exports nothing.
OutputSection Loop::exported() const {
  return writes_for_all(p_.options.ranks) ? p_.job.output : OutputSection{};
}

/// The progress names what the ranks wait for.
TrainListener Loop::listener() const {
  TrainListener listener = p_.options.listener;
  if (!one_of_many() || !listener.progress) return listener;
  listener.progress = [ranks = p_.options.ranks,
                       tell = std::move(listener.progress)](Progress progress) {
    progress.waits_for = ranks->waits_for();
    tell(progress);
  };
  return listener;
}

// No rank looks at its own signals: the wish of one is heard by all after the
// next vote.
bool Loop::stopped() const {
  if (one_of_many()) return stop_agreed_;
  return p_.options.stop != nullptr && p_.options.stop->load();
}

void Loop::wish() {
  if (!one_of_many()) return;
  RankGroup& ranks = *p_.options.ranks;
  if (p_.options.stop != nullptr && p_.options.stop->load()) ranks.wish_stop();
  if (p_.options.save != nullptr && p_.options.save->exchange(false))
    ranks.wish_save();
}

void Loop::heed() {
  if (!one_of_many()) return;
  stop_agreed_ |= p_.options.ranks->last_vote().stop;
  save_agreed_ |= p_.options.ranks->last_vote().save;
}

void Loop::vote() {
  if (!one_of_many()) return;
  wish();
  p_.options.ranks->vote({});
  heed();
}

// Machines of other kinds may differ in the last bits, and would then disagree
// on which weights are the best.
Json Loop::measured_by_first(Json mine) {
  if (!one_of_many()) return mine;
  RankGroup& ranks = *p_.options.ranks;
  const std::string text = ranks.first() ? mine.dump() : "";
  return Json::parse(ranks.gather(text).front(), "what rank 0 has measured");
}

// The vote has told all ranks that one of them has no memory. Each gives up the
// rows and batches that it holds; where none of them has any, rank 0 chooses
// what is next, for the largest share, so that all have the same micro-batches.
// If nothing is left it throws, and the others learn its error.
void Loop::make_room_together(const Batch& batch, const Error& shortage) {
  RankGroup& ranks = *p_.options.ranks;
  StepMemory* memory = p_.stepper.memory();
  if (memory == nullptr) throw shortage;
  Json mine;
  mine["rows"] = batch.rows();
  mine["gave_up"] = give_up_data(batch.rows(), shortage);
  std::int64_t rows = 0;
  bool gave_up = false;
  for (const std::string& text : ranks.gather(mine.dump())) {
    const Json of_rank = Json::parse(text, "what a rank has given up");
    rows = std::max(rows, of_rank.find("rows")->integer());
    gave_up |= *of_rank.find("gave_up") == Json(true);
  }
  if (gave_up) return;
  std::string chosen;
  if (ranks.first()) {
    if (!memory->give_way(p_.state.steps_taken, rows))
      refuse_shortage(batch, shortage);
    chosen = json_of({memory->events().back()}).array()[0].dump();
  }
  const std::string of_first = ranks.gather(chosen).front();
  if (!ranks.first())
    memory->follow(
        parse_oom_event(Json::parse(of_first, "what rank 0 gives up")));
}

void Loop::save_if_requested() {
  std::atomic<bool>* asked = p_.options.save;
  const bool requested = one_of_many()
                             ? std::exchange(save_agreed_, false)
                             : asked != nullptr && asked->exchange(false);
  if (!requested) return;
  save();
  finish_saving();
  if (p_.options.listener.note)
    p_.options.listener.note("saved on request after step " +
                             std::to_string(p_.state.steps_taken) + " in " +
                             p_.folder.path().string() + "; the run continues");
}

}  // namespace penstock
