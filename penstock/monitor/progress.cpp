#include "penstock/monitor/progress.h"

#include <cmath>
#include <cstdio>

namespace penstock {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[160];
  std::snprintf(text, sizeof(text), pattern, values...);
  return text;
}

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string shares(const StepParts& parts) {
  double wall = seconds(parts.wall);
  if (wall <= 0) return "AU n/a";
  // Largest remainders, so that the shown percentages sum to 100.
  const char* names[] = {"AU", "data", "copy", "host", "sync"};
  double exact[] = {seconds(parts.compute), seconds(parts.wait_data),
                    seconds(parts.wait_copy), seconds(parts.host),
                    seconds(parts.sync)};
  int shown[5];
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    exact[i] *= 100 / wall;
    shown[i] = static_cast<int>(std::floor(exact[i]));
    sum += shown[i];
  }
  for (; sum < 100; ++sum) {
    int most = 0;
    for (int i = 1; i < 5; ++i)
      if (exact[i] - shown[i] > exact[most] - shown[most]) most = i;
    ++shown[most];
  }
  std::string text = format("AU %d %%", shown[0]);
  bool first = true;
  for (int i = 1; i < 5; ++i) {
    if (shown[i] == 0) continue;
    text += format("%s %s %d %%", first ? " <-" : "", names[i], shown[i]);
    first = false;
  }
  return text;
}

}  // namespace

std::string shown_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "--:--";
  auto whole = static_cast<long>(std::lround(seconds));
  if (whole >= 3600)
    return format("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  return format("%02ld:%02ld", whole / 60, whole % 60);
}

std::string progress_line(const Progress& p) {
  double wall = seconds(p.parts.wall);
  std::string line = format("ep %ld/%ld %ld/%ld", long(p.epoch) + 1,
                            long(p.epochs), long(p.step), long(p.steps));
  line += " [" + shown_time(p.elapsed_s) + "<" + shown_time(p.left_s) + "]";
  if (wall > 0)
    line += format(" %.2f it/s", static_cast<double>(p.parts.steps) / wall);
  if (p.loss) line += format(" loss %.4g", *p.loss);
  line += " | " + shares(p.parts) + " |";
  if (p.vram_used && p.vram_total)
    line +=
        format(" VRAM %.1f/%.1f GiB", gib(*p.vram_used), gib(*p.vram_total));
  else
    line += " VRAM n/a";
  line += p.use.resident_bytes
              ? format(" RAM %.2f GiB", gib(*p.use.resident_bytes))
              : std::string(" RAM n/a");
  return line;
}

}  // namespace penstock
