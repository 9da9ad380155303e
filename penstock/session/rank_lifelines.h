#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/descriptor.h"
#include "penstock/session/rank_place.h"

namespace penstock {

/// A connection from every rank to rank 0, over which nothing is sent. The
/// kernel closes it when a process ends, however it ends. gloo has connections
/// of its own, but was seen to wait for a send in an allgather after it had
/// closed the one to a rank that was killed; it would have waited for its
/// timeout, half an hour.
///
/// One thread at a time.
class RankLifelines {
 public:
  /// Gives each rank the texts of all.
  using Gather = std::function<std::vector<std::string>(const std::string&)>;

  /// All ranks make them together: rank 0 opens a port and the others connect
  /// to it on `master`. Where one cannot, a warning is logged, and none has
  /// any. Throws what `gather` throws.
  RankLifelines(const Rank& rank, const std::string& master,
                const Gather& gather);
  RankLifelines(const RankLifelines&) = delete;
  RankLifelines& operator=(const RankLifelines&) = delete;

  /// Ranks whose processes have ended without leave(): on rank 0 of all, on the
  /// others rank 0, if it is one.
  std::vector<int> gone() const;
  /// This rank ends as planned. Only where none has failed: others may wait in
  /// vain for a rank that has.
  void leave() const;

 private:
  struct Line {
    int rank;
    Descriptor socket;
  };
  /// False: one cannot, so that no rank keeps any.
  bool keep_if_all_can(bool first, const std::vector<std::string>& whys);
  void accept_all(const Descriptor& listener, int world,
                  const std::string& word);

  std::vector<Line> lines_;
};

}  // namespace penstock
