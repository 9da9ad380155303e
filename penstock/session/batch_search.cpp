#include "penstock/session/batch_search.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr double kHeadroom = 0.08;  // of what the rows may take
constexpr double kGain = 1.03;      // in rows per second, of twice the rows
constexpr double kNear = 0.95;      // of what would fit: no more is tried
constexpr int kHalvings = 3;        // between what fits and what does not

class Searching {
 public:
  Searching(const BatchSearch& wanted,
            const std::function<TriedBatch(std::int64_t)>& attempt)
      : wanted_(wanted), attempt_(attempt) {}

  FoundBatch found() {
    // One row may take other algorithms: the line begins at two.
    TriedBatch best = tried(std::min<std::int64_t>(2, wanted_.most));
    if (!fits(best) && best.rows > 1) best = tried(1);
    if (!fits(best)) return std::move(found_);
    found_.by = FoundBatch::By::memory;
    if (best.rows > 1) best = grown(best);
    found_.rows = best.rows;
    if (best.rows == wanted_.most) found_.by = FoundBatch::By::most;
    return std::move(found_);
  }

 private:
  TriedBatch tried(std::int64_t rows) {
    found_.tried.push_back(attempt_(rows));
    return found_.tried.back();
  }
  double room() const {
    return static_cast<double>(wanted_.limit_bytes) -
           kHeadroom *
               static_cast<double>(wanted_.limit_bytes - wanted_.fixed_bytes);
  }
  bool fits(const TriedBatch& batch) const {
    return batch.fits && static_cast<double>(batch.peak_bytes) <= room();
  }

  /// How many rows fit by the line through two that did.
  std::int64_t by_line(const TriedBatch& less, const TriedBatch& more) const {
    const double row = static_cast<double>(more.peak_bytes - less.peak_bytes) /
                       static_cast<double>(more.rows - less.rows);
    if (row <= 0) return wanted_.most;
    const double further =
        (room() - static_cast<double>(more.peak_bytes)) / row;
    return more.rows + static_cast<std::int64_t>(std::clamp(
                           further, 0.0, static_cast<double>(wanted_.most)));
  }

  /// From the first two sizes on.
  TriedBatch grown(TriedBatch less) {
    if (less.rows == wanted_.most) return less;
    // Nothing is known yet but that the fixed part takes no row.
    const TriedBatch nothing{.peak_bytes = wanted_.fixed_bytes};
    std::int64_t next = std::clamp(by_line(nothing, less), less.rows + 1,
                                   std::min(2 * less.rows, wanted_.most));
    while (next > less.rows) {
      const TriedBatch more = tried(next);
      if (!fits(more)) return between(less, more.rows);
      if (stalls(less, more)) return less;
      const std::int64_t line = by_line(less, more);
      less = more;
      next = std::min({2 * more.rows, line, wanted_.most});
      if (static_cast<double>(more.rows) >= kNear * static_cast<double>(next))
        break;
      if (next < 2 * more.rows) next = rounded(next);
    }
    return less;
  }

  /// Whether the rate has stopped growing.
  bool stalls(const TriedBatch& less, const TriedBatch& more) {
    if (less.rows < 4) return false;
    const double doublings = std::log2(static_cast<double>(more.rows) /
                                       static_cast<double>(less.rows));
    if (more.rows_per_s >= less.rows_per_s * std::pow(kGain, doublings))
      return false;
    found_.by = FoundBatch::By::rate;
    return true;
  }

  /// Where the line was wrong.
  TriedBatch between(TriedBatch fitted, std::int64_t failed) {
    for (int i = 0; i < kHalvings; ++i) {
      const std::int64_t middle = rounded((fitted.rows + failed) / 2);
      if (middle <= fitted.rows) break;
      const TriedBatch batch = tried(middle);
      if (fits(batch))
        fitted = batch;
      else
        failed = middle;
    }
    return fitted;
  }

  /// Large sizes end in zeros of the binary system, which suits kernels.
  static std::int64_t rounded(std::int64_t rows) {
    std::int64_t step = 1;
    while (step * 128 <= rows) step *= 2;
    return rows / step * step;
  }

  const BatchSearch wanted_;
  const std::function<TriedBatch(std::int64_t)>& attempt_;
  FoundBatch found_;
};

}  // namespace

const char* name_of(FoundBatch::By by) {
  switch (by) {
    case FoundBatch::By::memory:
      return "memory";
    case FoundBatch::By::rate:
      return "rate";
    case FoundBatch::By::most:
      break;
  }
  return "most";
}

Json json_of(const FoundBatch& found) {
  Json json;
  json["rows"] = found.rows;
  json["by"] = name_of(found.by);
  json["tried"] = Json(Json::Array{});
  for (const TriedBatch& one : found.tried) {
    Json entry;
    entry["rows"] = one.rows;
    entry["fits"] = one.fits;
    entry["peak_bytes"] = one.fits ? Json(one.peak_bytes) : Json();
    entry["rows_per_s"] = one.fits ? Json(one.rows_per_s) : Json();
    json["tried"].push_back(std::move(entry));
  }
  return json;
}

FoundBatch search_batch(
    const BatchSearch& wanted,
    const std::function<TriedBatch(std::int64_t rows)>& attempt) {
  return Searching(wanted, attempt).found();
}

}  // namespace penstock
