#include "penstock/monitor/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr std::size_t kShortestBar = 5, kLongestBar = 20;  // places

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// "17.9/24.0 GiB", "1.2 GiB" without a known total, "n/a".
std::string memory(std::optional<std::size_t> used,
                   std::optional<std::size_t> total) {
  if (!used) return "n/a";
  return total ? formatted("%.1f/%.1f GiB", gib(*used), gib(*total))
               : formatted("%.1f GiB", gib(*used));
}

double left_s(const Progress& p) {
  if (p.steps_taken < 1 || p.steps_left < 0)
    return std::numeric_limits<double>::quiet_NaN();
  return p.elapsed_s / static_cast<double>(p.steps_taken) *
         static_cast<double>(p.steps_left);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : " ") + part;
  return text;
}

/// How far the loop is and how fast: where it stands first.
std::vector<std::string> parts_of_loop(const Progress& p) {
  const double wall = seconds(p.parts.wall);
  std::string at = formatted("ep %ld", long(p.epoch) + 1);
  if (p.epochs > 0) at += formatted("/%ld", long(p.epochs));
  at += formatted(" %ld", long(p.step));
  if (p.steps > 0) at += formatted("/%ld", long(p.steps));
  std::vector<std::string> parts = {
      at, "[" + shown_time(p.elapsed_s) + "<" + shown_time(left_s(p)) + "]"};
  if (wall > 0) {
    const double rows_per_s = static_cast<double>(p.parts.samples) / wall;
    parts.push_back(
        formatted("%.2f it/s", static_cast<double>(p.parts.steps) / wall));
    if (p.row.tokens > 0)
      parts.push_back(formatted("tok/s %.0f", p.row.tokens_per_s(rows_per_s)));
    if (p.row.utilisation(1) > 0)
      parts.push_back(
          formatted("MFU %.1f %%", 100 * p.row.utilisation(rows_per_s)));
  }
  if (p.loss) parts.push_back(formatted("loss %.4g", *p.loss));
  return parts;
}

std::vector<std::string> parts_of_machine(const Progress& p) {
  std::vector<std::string> parts;
  if (p.gpu) parts.push_back(p.gpu->text());
  parts.push_back("VRAM " + memory(p.device.used, p.device.total));
  parts.push_back("RAM " + memory(p.use.resident_bytes, p.limits.memory));
  parts.push_back(p.cpus_used
                      ? formatted("CPU %.1f/%.3g", *p.cpus_used, p.limits.cpus)
                      : std::string("CPU n/a"));
  parts[0] = "| " + parts[0];
  return parts;
}

/// So much of the epoch, in so many places.
std::string bar(const Progress& p, std::size_t places) {
  const double share = std::clamp(
      static_cast<double>(p.step) / static_cast<double>(p.steps), 0.0, 1.0);
  const auto full =
      static_cast<std::size_t>(share * static_cast<double>(places));
  std::string text;
  for (std::size_t i = 0; i < places; ++i) text += i < full ? "█" : "░";
  return text;
}

/// {"AU 71 %", "<- data 22 %", "copy 5 %"}.
std::vector<std::string> parts_of_shares(const StepParts& parts) {
  double wall = seconds(parts.wall);
  if (wall <= 0) return {"AU n/a"};
  bool known = parts.steps_take_time();
  // Largest remainders, so that the shown percentages sum to 100.
  const char* names[] = {"AU", "data", "copy", "host", "sync"};
  double exact[] = {known ? seconds(parts.compute) : 0,
                    seconds(parts.wait_data), seconds(parts.wait_copy),
                    seconds(parts.host) + (known ? 0 : seconds(parts.compute)),
                    seconds(parts.sync)};
  int shown[5];
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    exact[i] *= 100 / wall;
    shown[i] = static_cast<int>(std::floor(exact[i]));
    sum += shown[i];
  }
  for (; sum < 100; ++sum) {
    int most = known ? 0 : 1;
    for (int i = most + 1; i < 5; ++i)
      if (exact[i] - shown[i] > exact[most] - shown[most]) most = i;
    ++shown[most];
  }
  std::vector<std::string> shares = {known ? formatted("AU %d %%", shown[0])
                                           : std::string("AU n/a")};
  for (int i = 1; i < 5; ++i)
    if (shown[i] != 0)
      shares.push_back(formatted("%s%s %d %%", shares.size() == 1 ? "<- " : "",
                                 names[i], shown[i]));
  return shares;
}

}  // namespace

std::string shown_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "--:--";
  auto whole = static_cast<long>(std::lround(seconds));
  if (whole >= 3600)
    return formatted("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60,
                     whole % 60);
  return formatted("%02ld:%02ld", whole / 60, whole % 60);
}

std::string shown_shares(const StepParts& parts) {
  return joined(parts_of_shares(parts));
}

// The bar's places are multi-byte characters, so the width used is counted in
// `used` and never taken from the line's size.
std::string progress_line(const Progress& p, int columns) {
  std::vector<std::string> parts = parts_of_loop(p);
  const std::vector<std::string> shares = parts_of_shares(p.parts);
  if (!p.waits_for.empty()) parts.push_back("| waits for " + p.waits_for);
  parts.push_back("| " + shares[0]);
  parts.insert(parts.end(), shares.begin() + 1, shares.end());
  // The bar takes what is left beside these, with the first share that is
  // missing.
  const std::size_t beside =
      parts.size() - shares.size() + std::min<std::size_t>(2, shares.size());
  for (std::string& part : parts_of_machine(p))
    parts.push_back(std::move(part));
  if (columns <= 0) return joined(parts);
  const auto width = static_cast<std::size_t>(columns);
  std::size_t taken = 0;
  for (std::size_t i = 0; i < beside; ++i) taken += parts[i].size() + 1;
  std::string line = parts[0];
  std::size_t used = line.size();
  if (p.steps > 0) {
    const std::size_t room = width > taken ? width - taken : 0;
    const std::size_t places = std::clamp(room, kShortestBar, kLongestBar);
    line += " " + bar(p, places);
    used += 1 + places;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if ((used += 1 + parts[i].size()) > width) break;
    line += " " + parts[i];
  }
  return line;
}

std::string epoch_summary(const EpochNumbers& e) {
  double wall = seconds(e.parts.wall);
  std::string line =
      formatted("epoch %ld/%ld: ", long(e.epoch) + 1, long(e.epochs));
  line += wall > 0
              ? formatted("%.*f s, %.0f samples/s", wall < 10 ? 2 : 1, wall,
                          static_cast<double>(e.parts.samples) / wall)
              : "n/a s, n/a samples/s";
  line += ", " + shown_shares(e.parts);
  if (e.train_loss) line += formatted(", loss %.4g", *e.train_loss);
  if (e.val_loss) line += formatted(", val loss %.4g", *e.val_loss);
  return line;
}

}  // namespace penstock
