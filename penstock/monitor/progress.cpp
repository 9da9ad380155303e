#include "penstock/monitor/progress.h"

#include <cmath>
#include <limits>

#include "penstock/base/formatted.h"

namespace penstock {
namespace {

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

/// " tok/s 51200 MFU 38 %", or what is known of it.
std::string shown_work(const RowWork& row, double rows_per_s) {
  std::string text;
  if (row.tokens > 0)
    text += formatted(" tok/s %.0f", row.tokens_per_s(rows_per_s));
  if (row.utilisation(1) > 0)
    text += formatted(" MFU %.1f %%", 100 * row.utilisation(rows_per_s));
  return text;
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
  double wall = seconds(parts.wall);
  if (wall <= 0) return "AU n/a";
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
  std::string text = known ? formatted("AU %d %%", shown[0]) : "AU n/a";
  bool first = true;
  for (int i = 1; i < 5; ++i) {
    if (shown[i] == 0) continue;
    text += formatted("%s %s %d %%", first ? " <-" : "", names[i], shown[i]);
    first = false;
  }
  return text;
}

std::string progress_line(const Progress& p) {
  double wall = seconds(p.parts.wall);
  std::string line = formatted("ep %ld", long(p.epoch) + 1);
  if (p.epochs > 0) line += formatted("/%ld", long(p.epochs));
  line += formatted(" %ld", long(p.step));
  if (p.steps > 0) line += formatted("/%ld", long(p.steps));
  line += " [" + shown_time(p.elapsed_s) + "<" + shown_time(left_s(p)) + "]";
  if (wall > 0)
    line += formatted(" %.2f it/s", static_cast<double>(p.parts.steps) / wall);
  if (wall > 0)
    line += shown_work(p.row, static_cast<double>(p.parts.samples) / wall);
  if (p.loss) line += formatted(" loss %.4g", *p.loss);
  line += " | " + shown_shares(p.parts) + " |";
  if (p.gpu) line += " " + p.gpu->text();
  line += " VRAM " + memory(p.device.used, p.device.total);
  line += " RAM " + memory(p.use.resident_bytes, p.limits.memory);
  line += p.cpus_used ? formatted(" CPU %.1f/%.3g", *p.cpus_used, p.limits.cpus)
                      : std::string(" CPU n/a");
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
