#include "penstock/cli/report_text.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "penstock/base/printable.h"
#include "penstock/base/shown.h"
#include "penstock/base/table_text.h"

namespace penstock {
namespace {

constexpr std::size_t kColumns = 80;
constexpr int kPlotRows = 8;
constexpr std::size_t kPlotWidth = 70;
// One character for each of kParts, then for what is outside of the steps.
const char* const kMarks[] = {"█", "░", "▒", "·", "~"};
const char* const kOutside = "-";

/// After `indent`, the first line after `begin`.
std::string in_lines(const std::string& text, const std::string& indent,
                     const std::string& begin) {
  return wrapped(printable(text), kColumns, begin, indent);
}

std::string in_lines(const std::string& text, const std::string& indent = "") {
  return in_lines(text, indent, indent);
}

/// Padded on the left to a number of places.
std::string right(const std::string& text, std::size_t places) {
  const std::size_t have = places_of(text);
  return std::string(have < places ? places - have : 0, ' ') + text;
}

std::string left(const std::string& text, std::size_t places) {
  const std::size_t have = places_of(text);
  return text + std::string(have < places ? places - have : 0, ' ');
}

std::string head_of(const FoundRun& run) {
  const Json& report = run.report;
  std::string text = "run " + printable(text_in(report, {"run"}));
  const std::string device = text_in(report, {"settings", "device_used"});
  if (!device.empty()) text += " on " + printable(device);
  text += "\n";
  for (const std::string& note : run.notes) text += in_lines("note: " + note);
  text += "\n" + in_lines(verdict_sentence(report));
  const std::vector<std::string> actions = action_sentences(report);
  for (const std::string& action : actions)
    text += in_lines(action, "     ", "  -> ");
  const std::string none = text_in(report, {"verdict", "no_action"});
  if (actions.empty() && !none.empty()) text += in_lines(none + ".", "  ");
  for (const Json& finding : list_in(report, {"findings"}))
    text += in_lines("Also: " + text_in(finding, {"what"}) + " (" +
                         text_in(finding, {"because"}) +
                         "): " + text_in(finding, {"next"}) + ".",
                     "  ");
  auto first_ms = number_in(report, {"first_batch_ms"});
  auto steps = number_in(report, {"steps"});
  text +=
      "\n" + shown_number(steps) + (steps == 1 ? " step, " : " steps, ") +
      shown_number(number_in(report, {"samples_per_s"})) + " samples/s, AU " +
      shown_share(number_in(report, {"au"})) + ", first batch after " +
      (first_ms ? shown_seconds(*first_ms / 1e3) : std::string("n/a")) + "\n";
  if (const std::string wall = wall_line(report); !wall.empty())
    text += in_lines(wall);
  for (const std::string& sentence : preparation_sentences(report))
    text += in_lines(sentence);
  if (const std::string ranks = ranks_sentence(report); !ranks.empty())
    text += in_lines(ranks);
  return text;
}

/// The characters of one column of the plot, from the bottom up.
std::vector<const char*> column_of(const TimeSlice& slice) {
  std::vector<const char*> marks;
  constexpr std::size_t kRows = kPlotRows;
  if (!slice.known) return std::vector<const char*>(kRows, " ");
  double sum = 0;
  for (std::size_t part = 0; part <= kParts.size(); ++part) {
    const bool outside = part == kParts.size();
    sum += outside ? slice.outside : slice.shares[part];
    const auto up_to = static_cast<std::size_t>(std::lround(sum * kPlotRows));
    while (marks.size() < std::min(up_to, kRows))
      marks.push_back(outside ? kOutside : kMarks[part]);
  }
  marks.resize(kRows, " ");
  return marks;
}

std::string time_plot(const Json& report) {
  const std::vector<TimeSlice> slices = time_slices(report, kPlotWidth);
  if (slices.empty()) return "";
  const double end_s = slices.back().to_s;
  std::vector<std::vector<const char*>> columns;
  for (std::size_t c = 0; c < kPlotWidth; ++c) {
    const double at = end_s * (static_cast<double>(c) + 0.5) / kPlotWidth;
    auto slice = std::ranges::find_if(
        slices, [&](const TimeSlice& one) { return at < one.to_s; });
    if (slice == slices.end()) --slice;
    columns.push_back(column_of(*slice));
  }
  std::string text;
  for (int row = kPlotRows; row-- > 0;) {
    text += row == kPlotRows - 1       ? "100 % |"
            : row == kPlotRows / 2 - 1 ? " 50 % |"
                                       : "      |";
    for (const auto& column : columns)
      text += column[static_cast<std::size_t>(row)];
    text += "\n";
  }
  text += "  0 % +" + std::string(kPlotWidth, '-') + "\n       0 s" +
          right(shown_seconds(end_s), kPlotWidth - 3) + "\n";
  return text;
}

std::string parts_text(const Json& report) {
  std::string legend, line;
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    auto share = number_in(report, {"parts", kParts[part].key});
    if (!share || (*share == 0 && part + 1 == kParts.size())) continue;
    const std::string one = std::string(kMarks[part]) + " " +
                            kParts[part].shown + " " + shown_share(share);
    if (places_of(line) + 3 + places_of(one) > kColumns) {
      legend += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : "   ") + one;
  }
  if (!line.empty()) legend += line + "\n";
  const std::string plot = time_plot(report);
  if (legend.empty() && plot.empty()) return "";
  if (std::ranges::any_of(time_slices(report, kPlotWidth), [](auto& slice) {
        return slice.outside >= 0.5 / kPlotRows;
      }))
    legend += std::string(kOutside) + " validation and checkpoints\n";
  return "\nwhere the time went\n" + plot + legend;
}

/// A bar up to twice what is needed, with a mark at that.
std::string rate_bar(double rate, double widest, bool mark) {
  constexpr int kWidth = 16;
  const double cells = std::min(1.0, rate / widest) * kWidth;
  std::string bar;
  for (int cell = 0; cell < kWidth; ++cell) {
    const bool needed = mark && cell == kWidth / 2;
    if (needed)
      bar += "|";
    else if (cell + 0.75 < cells)
      bar += "█";
    else
      bar += cell + 0.25 < cells ? "▌" : " ";
  }
  return bar + (rate > widest ? ">" : " ");
}

std::string short_name(const std::string& name) {
  constexpr std::size_t kMost = 16;
  const std::string shown = printable(name);
  return places_of(shown) <= kMost ? shown : beginning(shown, kMost - 3);
}

std::string stages_text(const Json& report) {
  const std::vector<ShownStage> stages = shown_stages(report);
  if (stages.empty()) return "";
  const std::optional<double> needed = needed_rate(report);
  double widest =
      2 * (needed ? *needed : number_in(report, {"samples_per_s"}).value_or(0));
  if (widest <= 0)
    for (const ShownStage& stage : stages)
      widest = std::max(widest, *stage.rate);
  std::string text = "\nstages, samples/s";
  if (needed)
    text += " (| what the accelerator would take: " + shown_rate(needed) + ")";
  text += "\n" + left("", 44) + " threads    busy   p50 ms   p99 ms\n";
  for (const ShownStage& stage : stages) {
    const std::string name =
        stage.of_pool.empty() ? stage.name : "= " + stage.name + " threads";
    text +=
        left(short_name(name), 17) + right(shown_rate(stage.rate), 8) + " " +
        rate_bar(*stage.rate, widest, needed.has_value()) + " " +
        right(stage.workers == 0 ? "loop" : shown_number(stage.workers), 7) +
        right(stage.busy ? shown_share(stage.busy) : "n/a", 8);
    if (stage.of_pool.empty())
      text += right(shown_number(stage.p50_ms), 9) +
              right(shown_number(stage.p99_ms), 9);
    text += stage.limits ? " <\n" : "\n";
  }
  return text;
}

std::string epochs_text(const Json& report) {
  const Json::Array& epochs = list_in(report, {"epochs"});
  if (epochs.empty()) return "";
  constexpr std::size_t kMost = 12;  // the first and the last of them
  std::vector<std::vector<std::string>> rows = {{"epoch (from 1)", "time", "AU",
                                                 "train loss", "val loss",
                                                 "CPUs", "RAM", "GPU"}};
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    if (epochs.size() > kMost && i == kMost / 2) {
      rows.push_back({"..."});
      i = epochs.size() - kMost / 2;
    }
    const Json& epoch = epochs[i];
    auto number = number_in(epoch, {"epoch"});
    auto use = [&](const char* name) {
      return number_in(epoch, {"use", name, "mean"});
    };
    rows.push_back({shown_number(number ? std::optional(*number + 1) : number),
                    shown_seconds(number_in(epoch, {"seconds"})),
                    shown_share(number_in(epoch, {"au"})),
                    shown_number(number_in(epoch, {"train_loss"})),
                    shown_number(number_in(epoch, {"val_loss"})),
                    shown_number(use("cpus")),
                    shown_size(use("resident_bytes")),
                    shown_share(use("gpu_utilisation"))});
  }
  // A column that no epoch knows is left out.
  for (std::size_t c = rows[0].size(); c-- > 0;) {
    const bool any = std::any_of(rows.begin() + 1, rows.end(), [&](auto& row) {
      return c < row.size() && row[c] != "n/a" && row[c] != "...";
    });
    if (any) continue;
    for (auto& row : rows)
      if (c < row.size()) row.erase(row.begin() + std::ptrdiff_t(c));
  }
  return "\n" + table_text(rows);
}

std::string memory_text(const Json& report) {
  std::vector<std::vector<std::string>> rows = {
      {"memory", "planned", "used", "at most"}};
  auto size = [](std::optional<double> bytes) {
    return bytes ? shown_size(bytes) : "-";
  };
  for (const MemoryLine& line : memory_lines(report))
    rows.push_back(
        {line.owner, size(line.planned), size(line.used), size(line.peak)});
  return rows.size() == 1 ? "" : "\n" + table_text(rows);
}

/// "data 94 %, compute 6 %": the two that took longest.
std::string largest_parts(const Json& step) {
  std::vector<std::pair<double, std::string>> parts;
  for (const PartName& part : kParts)
    if (auto share = number_in(step, {"parts", part.key});
        share && *share >= 0.005)
      parts.emplace_back(*share, part.brief);
  std::ranges::stable_sort(parts, std::greater<>(),
                           [](const auto& part) { return part.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, parts.size()); ++i)
    text += (i == 0 ? "" : ", ") + parts[i].second + " " +
            shown_number(std::round(100 * parts[i].first)) + " %";
  return text;
}

std::string worst_text(const Json& report) {
  std::vector<std::vector<std::string>> rows = {
      {"epoch", "step", "ms", "where its time went", "first samples"}};
  constexpr std::size_t kMost = 5;  // the page has all
  for (const Json& step : list_in(report, {"worst_steps"})) {
    if (rows.size() > kMost) break;
    std::string samples;
    for (const Json& key : list_in(step, {"samples"}))
      samples += (samples.empty() ? "" : ", ") +
                 (key.is_string() ? key.string() : key.dump());
    auto counted = [&](const char* key) {
      auto number = number_in(step, {key});
      return shown_number(number ? std::optional(*number + 1) : number);
    };
    rows.push_back({counted("epoch"), counted("step"),
                    shown_number(number_in(step, {"ms"})), largest_parts(step),
                    beginning(samples, 24)});
  }
  return rows.size() == 1
             ? ""
             : "\nlongest steps (epochs and steps count from 1)\n" +
                   table_text(rows);
}

std::string tuner_text(const Json& report) {
  std::vector<std::vector<std::string>> rows = tuner_rows(report);
  if (rows.empty()) return "";
  for (std::vector<std::string>& row : rows)
    row[1] = beginning(printable(row[1]), 24);
  const std::string rests = text_in(report, {"tuner", "rests"});
  return "\nchanges by the tuner\n" + table_text(rows) +
         (rests.empty() ? "" : in_lines("in the end: " + rests));
}

std::string gain_text(const Json& gain) {
  if (!gain.is_number()) return "n/a";
  const double by = gain.number();
  if (by >= 1) return shown_number(1 + by) + " x the rate";
  return shown_share(std::abs(by)) + (by < 0 ? " slower" : " faster");
}

std::string advice_text(const Json& advice) {
  if (!advice.is_object()) return "";
  const std::string change = advice.find("knob")->string() + " from " +
                             advice.find("from")->dump() + " to " +
                             advice.find("to")->dump();
  const std::string predicted = gain_text(*advice.find("predicted_gain"));
  if (*advice.find("followed") == Json(false))
    return in_lines("The first run's verdict advised to set " + change +
                    " (predicted: " + predicted +
                    "); the second run did not do so.");
  std::string text = "The first run's verdict advised to set " + change +
                     ": predicted " + predicted + ", measured " +
                     gain_text(*advice.find("measured_gain")) + ".";
  if (*advice.find("other_settings_changed") != Json(0))
    text += " Other settings were changed, too.";
  return in_lines(text);
}

}  // namespace

std::string run_text(const FoundRun& run) {
  const Json& report = run.report;
  if (has_folds(report)) return folds_text(report);
  return head_of(run) + parts_text(report) + stages_text(report) +
         tuner_text(report) + epochs_text(report) + memory_text(report) +
         worst_text(report);
}

std::string comparison_text(const Json& comparison) {
  const Json& first = *comparison.find("first");
  const Json& second = *comparison.find("second");
  std::string text = "1: " + printable(text_in(first, {"run"})) +
                     "\n2: " + printable(text_in(second, {"run"})) + "\n\n";
  auto rate = [](const Json& run) {
    return shown_number(number_in(run, {"samples_per_s"}));
  };
  text += in_lines("The second run takes " + rate(second) +
                       " samples/s, the first " + rate(first) + ": " +
                       gain_text(*comparison.find("gain")) + ".",
                   "");
  text += advice_text(*comparison.find("advice"));
  std::vector<std::vector<std::string>> rows = {{"", "1", "2"}};
  auto both = [&](const std::string& name, auto shown) {
    rows.push_back({name, shown(first), shown(second)});
  };
  for (const Json& metric : list_in(comparison, {"metrics"}))
    rows.push_back({printable(text_in(metric, {"name"})),
                    shown_number(number_in(metric, {"first"})),
                    shown_number(number_in(metric, {"second"}))});
  both("AU",
       [](const Json& run) { return shown_share(number_in(run, {"au"})); });
  both("samples/s", rate);
  both("limit", [](const Json& run) { return text_in(run, {"limit"}); });
  for (const PartName& part : kParts)
    both(part.shown, [&](const Json& run) {
      return shown_share(number_in(run, {"parts", part.key}));
    });
  for (const Json& stage : list_in(comparison, {"stages"}))
    rows.push_back({"stage '" + text_in(stage, {"name"}) + "', samples/s",
                    shown_rate(number_in(stage, {"first"})),
                    shown_rate(number_in(stage, {"second"}))});
  for (const Json& differs : list_in(comparison, {"settings"})) {
    auto value = [&](const char* run) {
      const Json* found = found_in(differs, {run});
      return found->is_null() ? "-" : beginning(found->string(), 17);
    };
    rows.push_back({beginning(text_in(differs, {"key"}), 27), value("first"),
                    value("second")});
  }
  return text + "\n" + table_text(rows);
}

}  // namespace penstock
