#include "penstock/report/ranks_sentence.h"

#include <algorithm>
#include <vector>

#include "penstock/report/report_facts.h"

namespace penstock {
namespace {

constexpr std::size_t kMostHosts = 4;

/// "gpu01, gpu02 and 6 more": each once.
std::string hosts_text(const Json& report) {
  std::vector<std::string> hosts;
  for (const Json& host : list_in(report, {"ranks", "hosts"}))
    if (host.is_string() &&
        std::ranges::find(hosts, host.string()) == hosts.end())
      hosts.push_back(host.string());
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMostHosts); ++i)
    text += (i == 0 ? "" : ", ") + hosts[i];
  if (hosts.size() > kMostHosts)
    text += " and " + std::to_string(hosts.size() - kMostHosts) + " more";
  return text;
}

/// Rank 0 writes checkpoints between its steps, and no other rank does.
std::string reason_of(const std::string& cause, bool first) {
  if (cause == "input") return "its batches come late";
  if (cause == "processor") return "other programs use its processor";
  if (cause != "compute") return cause;
  return first ? "its steps and checkpoints take longer"
               : "its steps take longer";
}

std::string slowest_text(const Json& report) {
  const std::string cause = text_in(report, {"ranks", "slowest", "cause"});
  const std::string share =
      shown_share(number_in(report, {"ranks", "slowest", "share"}));
  if (cause.empty()) return "No rank keeps the others waiting.";
  const auto rank = number_in(report, {"ranks", "slowest", "rank"});
  if (!rank)
    return "All ranks wait for the " + cause + " " + share + " of the time.";
  const std::string host = text_in(report, {"ranks", "slowest", "host"});
  return "The others wait for rank " + shown_number(rank) +
         (host.empty() ? "" : " on " + host) + " " + share +
         " of the time: " + reason_of(cause, *rank == 0) + ".";
}

}  // namespace

std::string ranks_sentence(const Json& report) {
  const auto world = number_in(report, {"ranks", "world"});
  if (!world) return "";
  const std::string hosts = hosts_text(report);
  return shown_number(world) + " ranks" +
         (hosts.empty() ? "" : " on " + hosts) + " (" +
         text_in(report, {"ranks", "launcher"}) + ", gradients added by " +
         text_in(report, {"ranks", "backend"}) + "). " + slowest_text(report);
}

}  // namespace penstock
