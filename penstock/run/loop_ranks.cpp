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
