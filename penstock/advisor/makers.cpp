#include "penstock/advisor/makers.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr double kLeastTime = 1e-9;   // seconds, to divide by
constexpr double kLeastShare = 0.01;  // of the processors

}  // namespace

std::optional<MakersUse> use_of_makers(const FetchWindow& window) {
  // Other threads of its process may work for one that waits.
  const double of_process =
      window.worker_s > 0 ? window.worker_cpu_s / window.worker_s : 0;
  if (window.making) {
    const FetchWindow::Making& making = *window.making;
    const double all = making.item_s + making.collate_s;
    if (all <= 0) return std::nullopt;
    const double ran =
        std::max((making.item_cpu_s + making.collate_cpu_s) / all, of_process);
    const double runnable = ran / std::max(making.cpu_share, kLeastTime);
    return MakersUse{.ran = ran, .queued = runnable - ran};
  }
  if (!window.looked || window.looked->seconds <= 0) return std::nullopt;
  const FetchWindow::Looked& looked = *window.looked;
  return MakersUse{.ran = std::max(looked.ran_s / looked.seconds, of_process),
                   .queued = looked.queued_s / looked.seconds};
}

double share_of_processors(const FetchWindow& window) {
  const bool have_processors =
      window.workers > 0 && window.workers <= window.cpus;
  if (!have_processors || !window.looked || window.looked->seconds <= 0)
    return window.cpu_share;
  const double all = window.worker_s / window.looked->seconds;
  const double ran = all * window.looked->ran_s;
  // Threads are of the loop's process, which counts what they computed.
  const double own =
      std::max(0.0, window.cpu_s - (window.worker_cpu_s > 0 ? 0.0 : ran));
  const double could = own / std::max(window.cpu_share, kLeastShare) + ran +
                       all * window.looked->queued_s;
  return could > 0 ? std::max(kLeastShare, (own + ran) / could)
                   : window.cpu_share;
}

double seconds_of_workers(int workers, double waits, double computes,
                          int cpus) {
  if (workers <= cpus || computes <= 0) return (waits + computes) / workers;
  // Each waits, then computes, then waits again: how often that so many of them
  // compute is a chain of births and deaths.
  double often = 1;  // as often as all of them wait
  double all = 1;
  double busy = 0;
  for (int computing = 1; computing <= workers; ++computing) {
    const int at_work = std::min(computing, cpus);
    often *= (workers - computing + 1) * computes /
             (std::max(waits, kLeastTime) * at_work);
    all += often;
    busy += often * at_work;
  }
  return computes * all / busy;
}

}  // namespace penstock
