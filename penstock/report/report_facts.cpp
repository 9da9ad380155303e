#include "penstock/report/report_facts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "penstock/base/formatted.h"
#include "penstock/base/shown.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/dataset.h"

namespace penstock {
namespace {

/// A number of one row of a column; none where it is not known.
std::optional<double> cell(const Json::Array& column, std::size_t row) {
  if (row >= column.size() || !column[row].is_number()) return std::nullopt;
  return column[row].number();
}

std::string name_of_limit(const std::string& limit) {
  static const std::map<std::string, std::string> kNames = {
      {"compute", "Compute-bound"},
      {"data", "Input-bound"},
      {"copy", "Copy-bound"},
      {"order", "Bound by the order of batches"},
      {"host", "Bound by the training loop"},
      {"outside", "Bound by work outside the steps"}};
  auto name = kNames.find(limit);
  return name == kNames.end() ? "Bottleneck unknown" : name->second;
}

ShownStage stage_of(const Json& stage, const std::string& limiting) {
  ShownStage shown{.name = text_in(stage, {"name"}),
                   .workers = number_in(stage, {"workers"}),
                   .rate = number_in(stage, {"rate"}),
                   .busy = number_in(stage, {"busy"}),
                   .p50_ms = number_in(stage, {"p50_ms"}),
                   .p99_ms = number_in(stage, {"p99_ms"}),
                   .max_ms = number_in(stage, {"max_ms"}),
                   .waits_for_input = number_in(stage, {"blocked_get"}),
                   .waits_for_room = number_in(stage, {"blocked_put"})};
  shown.limits = !limiting.empty() && shown.name == limiting;
  return shown;
}

/// Its stages one after the other: the times per sample add up.
ShownStage pool_of(const std::string& name,
                   const std::vector<const ShownStage*>& stages) {
  ShownStage pool{.name = name, .workers = stages.front()->workers};
  double time = 0, busy = 0;
  for (const ShownStage* stage : stages) {
    pool.of_pool.push_back(stage->name);
    pool.limits |= stage->limits;
    time += 1 / *stage->rate;
    busy += stage->busy.value_or(0);
  }
  pool.rate = 1 / time;
  pool.busy = std::min(1.0, busy);  // what was measured apart may overlap
  return pool;
}

void flatten(const Json& json, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& to) {
  if (!json.is_object() || json.object().empty()) {
    if (!path.empty())
      to.emplace_back(path, json.is_string() ? json.string() : json.dump());
    return;
  }
  for (const auto& [key, value] : json.object())
    flatten(value, path.empty() ? key : path + "." + key, to);
}

}  // namespace

std::string verdict_sentence(const Json& report) {
  const std::string cause = text_in(report, {"verdict", "cause"});
  return name_of_limit(text_in(report, {"verdict", "limit"})) +
         (cause.empty() ? "" : ": " + cause) + ".";
}

std::vector<WallPart> wall_parts(const Json& report) {
  const auto wall = number_in(report, {"wall_s"});
  if (!wall || *wall <= 0) return {};
  std::vector<WallPart> parts = {{"steps", "steps", *wall}};
  constexpr std::pair<const char*, const char*> kOutside[] = {
      {"checkpoint_s", "checkpoints"},
      {"validation_s", "validation"},
      {"epoch_start_s", "waiting for the first batch"},
      {"other_s", "opening and closing"}};
  for (const auto& [key, shown] : kOutside) {
    const auto part = number_in(report, {"outside", key});
    if (!part) return {};
    parts.push_back({key, shown, *part});
    parts[0].seconds -= *part;
  }
  parts[0].seconds = std::max(0.0, parts[0].seconds);
  return parts;
}

std::string wall_line(const Json& report) {
  std::string line;
  const auto wall = number_in(report, {"wall_s"});
  for (const WallPart& part : wall_parts(report))
    if (part.seconds >= 0.0005 * *wall)
      line += (line.empty() ? "" : ", ") + std::string(part.shown) + " " +
              shown_share(part.seconds / *wall);
  return line.empty() ? "" : "wall time " + shown_seconds(wall) + ": " + line;
}

std::string greatest_part(const Json& report) {
  const char* name = "";
  double most = 0;
  auto see = [&](const char* shown, double part) {
    if (part > most) name = shown, most = part;
  };
  const std::vector<WallPart> parts = wall_parts(report);
  if (parts.empty()) return "";
  for (const PartName& part : kParts)
    see(part.brief,
        number_in(report, {"parts", part.key}).value_or(0) * parts[0].seconds);
  for (std::size_t i = 1; i < parts.size(); ++i)
    see(parts[i].shown, parts[i].seconds);
  const double wall = number_in(report, {"wall_s"}).value_or(0);
  return most > 0 ? formatted("%s %.0f %%", name, 100 * most / wall) : "";
}

std::vector<std::string> action_sentences(const Json& report) {
  std::vector<std::string> sentences;
  for (const Json& action : list_in(report, {"verdict", "actions"})) {
    const Json* from = found_in(action, {"from"});
    const Json* to = found_in(action, {"to"});
    if (from == nullptr || to == nullptr) continue;
    const std::string cost = text_in(action, {"cost"});
    std::string gain = "n/a";
    if (auto predicted = number_in(action, {"predicted_gain"}))
      gain = *predicted < 1 ? formatted("%.0f %% faster", 100 * *predicted)
                            : formatted("%.3g x faster", 1 + *predicted);
    sentences.push_back("Set " + text_in(action, {"knob"}) + " from " +
                        from->dump() + " to " + to->dump() + ": predicted " +
                        gain + (cost.empty() ? "" : " (costs " + cost + ")") +
                        ".");
  }
  return sentences;
}

std::vector<std::vector<std::string>> tuner_rows(const Json& report) {
  std::vector<std::vector<std::string>> rows = {
      {"after", "setting", "from", "to", "predicted", "measured", ""}};
  for (const Json& change : list_in(report, {"tuner", "decisions"})) {
    auto gain = [&](const char* key) {
      auto share = number_in(change, {key});
      return share ? formatted("%+.0f %%", 100 * *share) : std::string("n/a");
    };
    const Json* undone = found_in(change, {"undone"});
    const bool undoes = number_in(change, {"predicted_gain"}) == 0.0 &&
                        !number_in(change, {"measured_gain"});
    rows.push_back(
        {shown_seconds(number_in(change, {"at_s"})), text_in(change, {"knob"}),
         shown_number(number_in(change, {"from"})),
         shown_number(number_in(change, {"to"})),
         undoes ? "-" : gain("predicted_gain"),
         undoes ? "-" : gain("measured_gain"),
         undone != nullptr && *undone == Json(true) ? "undone" : ""});
    if (found_in(change, {"also", "knob"}) != nullptr)
      rows.push_back({"", text_in(change, {"also", "knob"}),
                      shown_number(number_in(change, {"also", "from"})),
                      shown_number(number_in(change, {"also", "to"})), "", "",
                      "with that"});
  }
  if (rows.size() == 1) rows.clear();
  return rows;
}

std::optional<double> needed_rate(const Json& report) {
  // Of an unfinished run the parts are those of a window, which has its own
  // rate.
  auto rate = number_in(report, {"rate"});
  if (!rate) rate = number_in(report, {"samples_per_s"});
  auto computes = number_in(report, {"parts", "compute"});
  // Without a utilisation the steps are no work that an input could keep up
  // with.
  if (!rate || !computes || *computes <= 0 || !number_in(report, {"au"}))
    return std::nullopt;
  return *rate / *computes;
}

std::vector<ShownStage> shown_stages(const Json& report) {
  const std::string limiting = text_in(report, {"verdict", "stage"});
  const Json::Array& stages = list_in(report, {"stages"});
  std::vector<ShownStage> shown;
  std::vector<std::string> pools;
  for (const Json& stage : stages) {
    ShownStage one = stage_of(stage, limiting);
    if (!one.rate || *one.rate <= 0) continue;  // it does nothing itself
    shown.push_back(std::move(one));
    pools.push_back(text_in(stage, {"pool"}));
  }
  std::vector<ShownStage> with_pools;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    with_pools.push_back(shown[i]);
    const bool last =
        !pools[i].empty() && std::find(pools.begin() + long(i) + 1, pools.end(),
                                       pools[i]) == pools.end();
    if (!last) continue;
    std::vector<const ShownStage*> members;
    for (std::size_t j = 0; j <= i; ++j)
      if (pools[j] == pools[i]) members.push_back(&shown[j]);
    if (members.size() > 1) with_pools.push_back(pool_of(pools[i], members));
  }
  return with_pools;
}

std::vector<TimeSlice> time_slices(const Json& report, std::size_t most) {
  const Json::Array& ends = list_in(report, {"timeline", "seconds"});
  std::array<const Json::Array*, kParts.size()> parts;
  for (std::size_t p = 0; p < kParts.size(); ++p)
    parts[p] = &list_in(report, {"timeline", kParts[p].key});
  const Json::Array& outside = list_in(report, {"timeline", "outside"});
  const double end = ends.empty() ? 0 : cell(ends, ends.size() - 1).value_or(0);
  std::vector<TimeSlice> slices;
  double began = 0, sum = 0;
  TimeSlice slice;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    const double to = std::max(began, cell(ends, row).value_or(began));
    for (std::size_t p = 0; p < kParts.size(); ++p) {
      const double time = std::max(0.0, cell(*parts[p], row).value_or(0));
      slice.shares[p] += time;
      sum += time;
    }
    slice.outside += std::max(0.0, cell(outside, row).value_or(0));
    began = slice.to_s = to;
    // The slices are as long as one another, or as a point where that is more.
    const bool last = row + 1 == ends.size();
    const double due = end * static_cast<double>(slices.size() + 1) /
                       static_cast<double>(most);
    if (!last && to < due * (1 - 1e-9)) continue;
    sum += slice.outside;
    slice.known = sum > 0;
    if (slice.known) {
      for (double& share : slice.shares) share /= sum;
      slice.outside /= sum;
    }
    if (slice.known || slice.to_s > slice.from_s) slices.push_back(slice);
    slice = {.from_s = to, .to_s = to};
    sum = 0;
  }
  return slices;
}

std::vector<std::pair<double, double>> curve_of(const Json& report,
                                                const char* column) {
  const Json::Array& times = list_in(report, {"timeline", "seconds"});
  const Json::Array& values = list_in(report, {"timeline", column});
  std::vector<std::pair<double, double>> curve;
  for (std::size_t row = 0; row < std::min(times.size(), values.size()); ++row)
    if (auto time = cell(times, row))
      if (auto value = cell(values, row)) curve.emplace_back(*time, *value);
  return curve;
}

std::vector<std::pair<double, double>> memory_over_time(
    const Json& report, std::string_view owner) {
  constexpr std::string_view kOwners[] = {"parameters", "gradients",
                                          "optimizer",  "activations",
                                          "cache",      "look_ahead"};
  const Json::Array& times =
      list_in(report, {"memory", "over_time", "seconds"});
  std::vector<std::pair<double, double>> curve;
  for (std::size_t row = 0; row < times.size(); ++row) {
    double bytes = 0;
    bool known = cell(times, row).has_value();
    for (const std::string_view one : kOwners) {
      if (!owner.empty() && one != owner) continue;
      const Json::Array& values = list_in(report, {"memory", "over_time", one});
      const auto value = row < values.size() ? cell(values, row) : std::nullopt;
      known &= value.has_value();
      bytes += value.value_or(0);
    }
    if (known) curve.emplace_back(*cell(times, row), bytes);
  }
  return curve;
}

namespace {

std::string held_name(const std::string& owner) {
  static const std::map<std::string, std::string> kNames = {
      {"rows", "prepared rows"},
      {"batches", "batches and their ring"},
      {"copies", "copies in progress"},
      {"values", "parsed values"},
      {"keys", "keys of rows"},
      {"records", "records read ahead"},
      {"checkpoints", "checkpoints being written"}};
  auto name = kNames.find(owner);
  return name == kNames.end() ? owner : name->second;
}

std::string place_name(const std::string& place) {
  if (place == "device") return ", on the device";
  if (place == "pinned") return ", pinned";
  return place == "files" ? ", mapped files" : ", on the host";
}

}  // namespace

std::vector<std::string> preparation_sentences(const Json& report) {
  std::vector<std::string> all;
  auto add = [&](const Json& of, const std::string& source) {
    const std::string form = text_in(of, {"preparation", "form"});
    const std::string reason = text_in(of, {"preparation", "reason"});
    if (!form.empty()) all.push_back(source + preparation_text(form, reason));
  };
  if (const Json* rows = found_in(report, {"dataset"})) add(*rows, "");
  const Json::Array& sources = list_in(report, {"dataset", "sources"});
  for (std::size_t s = 0; s < sources.size(); ++s)
    add(sources[s], "sources[" + std::to_string(s) + "]: ");
  return all;
}

std::vector<MemoryLine> memory_lines(const Json& report) {
  auto used = [&](const char* key) {
    return number_in(report, {"memory", "used", key});
  };
  auto grown = [&](const char* now, const char* before) {
    auto end = used(now), start = used(before);
    return end && start ? std::optional(std::max(0.0, *end - *start))
                        : std::nullopt;
  };
  auto planned = [&](const char* key) {
    return number_in(report, {"memory", "planned", key});
  };
  std::vector<MemoryLine> lines = {
      {.owner = "rows and batches on the host",
       .planned = planned("host_bytes"),
       .used = grown("host_bytes", "host_bytes_before")},
      {.owner = "rows and batches on the device",
       .planned = planned("device_bytes"),
       .used = used("device_bytes")},
      {.owner = "rows in mapped files",
       .planned = planned("disk_bytes"),
       .used = grown("mapped_bytes", "mapped_bytes_before")},
      {.owner = "initial scan, until it ended",
       .planned = number_in(report, {"plan", "scan", "bytes"})},
      {.owner = "program, before rows were read",
       .used = used("host_bytes_before")},
      {.owner = "the process", .peak = used("peak_bytes")}};
  for (const Json& held : list_in(report, {"memory", "held"}))
    lines.push_back({.owner = held_name(text_in(held, {"for"})) +
                              place_name(text_in(held, {"in"})),
                     .used = number_in(held, {"bytes"}),
                     .peak = number_in(held, {"peak_bytes"})});
  std::erase_if(lines, [](const MemoryLine& line) {
    return line.planned.value_or(0) == 0 && line.used.value_or(0) == 0 &&
           line.peak.value_or(0) == 0;
  });
  return lines;
}

std::vector<std::pair<std::string, std::string>> flattened(const Json& json) {
  std::vector<std::pair<std::string, std::string>> lines;
  flatten(json, "", lines);
  return lines;
}

std::string shown_number(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return "n/a";
  const double size = std::abs(*number);
  if (size >= 1e15) return formatted("%.4g", *number);
  if (size < 1000 && size != std::floor(size))
    return formatted(size >= 100  ? "%.0f"
                     : size >= 10 ? "%.1f"
                                  : "%.3g",
                     *number);
  std::string digits = formatted("%.0f", size);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return (*number < 0 ? "-" : "") + digits;
}

std::string shown_rate(std::optional<double> rate) {
  if (!rate || *rate < 9999.5) return shown_number(rate);
  double scaled = *rate;
  for (const char* unit : {"k", "M", "G"}) {
    scaled /= 1000;
    if (scaled < 999.5)
      return formatted(scaled < 99.95 ? "%.1f %s" : "%.0f %s", scaled, unit);
  }
  return formatted("%.3g", *rate);
}

std::string shown_share(std::optional<double> share) {
  if (!share || !std::isfinite(*share)) return "n/a";
  return shown_percent(*share, 1);
}

std::string shown_size(std::optional<double> bytes) {
  if (!bytes || !(*bytes >= 0) || *bytes > 9e18) return "n/a";
  return shown_bytes(static_cast<std::size_t>(*bytes));
}

std::string shown_seconds(std::optional<double> seconds) {
  if (!seconds || !(*seconds >= 0) || *seconds > 1e9) return "n/a";
  if (*seconds < 100) return formatted("%.3g s", *seconds);
  const long whole = std::lround(*seconds);
  if (whole < 3600) return formatted("%ld:%02ld min", whole / 60, whole % 60);
  return formatted("%ld:%02ld:%02ld h", whole / 3600, whole / 60 % 60,
                   whole % 60);
}

}  // namespace penstock
