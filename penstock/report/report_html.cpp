#include "penstock/report/report_html.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "penstock/report/folds.h"
#include "penstock/report/html_charts.h"
#include "penstock/report/html_elements.h"
#include "penstock/report/html_outcomes.h"
#include "penstock/report/ranks_sentence.h"
#include "penstock/report/report_facts.h"

// Drawings hold no text: they are stretched to the page, and the words around
// them are HTML, so that both are readable at any width.
namespace penstock {
namespace {

/// The folder of a run, or the title of a loop, which has no folder.
std::string name_of(const Json& report) {
  const std::string loop = text_in(report, {"loop"});
  return loop.empty() ? text_in(report, {"run"}) : loop;
}

std::string top_of(const Json& report) {
  std::string what = escaped(name_of(report));
  const std::string device = text_in(report, {"settings", "device_used"});
  if (!device.empty()) what += " · on " + escaped(device);
  const Json* interrupted = found_in(report, {"interrupted"});
  if (interrupted != nullptr && *interrupted == Json(true))
    what += " · interrupted";
  const Json* unfinished = found_in(report, {"unfinished"});
  if (unfinished != nullptr && *unfinished == Json(true))
    what += " · not finished: from its steps";
  std::string text = "<header><p class=\"run\">" + what + "</p>\n<h1>" +
                     escaped(verdict_sentence(report)) + "</h1>\n";
  const std::vector<std::string> actions = action_sentences(report);
  for (std::size_t i = 0; i < actions.size(); ++i)
    text +=
        element("p", i == 0 ? "action" : "action more", escaped(actions[i])) +
        "\n";
  for (const Json& finding : list_in(report, {"findings"}))
    text += element("p", "action more",
                    escaped("Also: " + text_in(finding, {"what"}) + " (" +
                            text_in(finding, {"because"}) +
                            "): " + text_in(finding, {"next"}) + "."));
  const std::string none = text_in(report, {"verdict", "no_action"});
  if (actions.empty() && !none.empty())
    text += "<p class=\"action none\">" + escaped(none) + ".</p>\n";
  const std::string because = text_in(report, {"verdict", "because"});
  if (!because.empty())
    text += "<p class=\"because\">" + escaped(because) + "</p>\n";
  if (const std::string ranks = ranks_sentence(report); !ranks.empty())
    text += "<p class=\"because\">" + escaped(ranks) + "</p>\n";
  auto first_ms = number_in(report, {"first_batch_ms"});
  text += div(
      "figures",
      metric_tiles(report) +
          figure(share_cell(report, {"au"}), "accelerator utilisation") +
          figure(number_cell(report, {"samples_per_s"}), "samples per second") +
          figure(number_cell(report, {"steps"}), "steps") +
          figure(number_cell(report, {"samples"}), "samples") +
          figure(shown_data(first_ms, !first_ms ? "n/a"
                                      : *first_ms < 1e3
                                          ? shown_number(*first_ms) + " ms"
                                          : shown_seconds(*first_ms / 1e3)),
                 "until the first batch"));
  return text + "</header>\n";
}

std::string legend(const Json& report, bool outside) {
  std::string text;
  for (const PartName& part : kParts) {
    auto share = number_in(report, {"parts", part.key});
    if (!share || (*share == 0 && std::string_view(part.key) == "sync"))
      continue;
    text += "<li><i class=\"" + std::string(part.key) + "\"></i>" + part.shown +
            " " + shown_data(share, shown_share(share)) + "</li>";
  }
  if (outside)
    text += "<li><i class=\"outside\"></i>validation and checkpoints</li>";
  return text.empty() ? "" : "<ul class=\"legend\">" + text + "</ul>\n";
}

/// Under a drawing over time: where it begins, its middle and its end.
std::string time_axis(double from, double to) {
  return div("axis", element("span", "", shown_seconds(from)) +
                         element("span", "", shown_seconds((from + to) / 2)) +
                         element("span", "", shown_seconds(to)));
}

/// A bar of the whole run: its steps, and what passed outside of them.
std::string wall_bar(const Json& report) {
  std::string names, bar;
  const double wall = number_in(report, {"wall_s"}).value_or(0);
  for (const WallPart& part : wall_parts(report)) {
    const double share = part.seconds / wall;
    if (share < 0.0005) continue;
    names += "<li><i class=\"" + std::string(part.key) + "\"></i>" +
             part.shown + " " + shown_share(share) + "</li>";
    bar += "<i class=\"" + std::string(part.key) +
           "\" style=\"width:" + percent(share) + "\"></i>";
  }
  if (bar.empty()) return "";
  return "<p>The whole run, " + shown_seconds(wall) +
         ":</p>\n<ul class=\"legend\">" + names + "</ul>\n" + div("bar", bar) +
         "<p>Its steps:</p>\n";
}

std::string parts_section(const Json& report) {
  std::string bar;
  for (const PartName& part : kParts)
    if (auto share = number_in(report, {"parts", part.key});
        share && *share > 0)
      bar += "<i class=\"" + std::string(part.key) +
             "\" style=\"width:" + percent(*share) + "\"></i>";
  const std::vector<TimeSlice> slices = time_slices(report, 512);
  const std::string over_time = stacked_parts(slices);
  const bool outside = std::ranges::any_of(
      slices, [](const TimeSlice& slice) { return slice.outside > 0; });
  std::string text = wall_bar(report) + legend(report, outside);
  if (!bar.empty()) text += div("bar", bar);
  if (!over_time.empty())
    text += div("name", element("span", "of",
                                "share of each second, 0 to 100 "
                                "%")) +
            over_time + "\n" + time_axis(0, slices.back().to_s);
  return section("Where the time went", text);
}

std::string threads_of(const ShownStage& stage) {
  if (!stage.workers) return "";
  if (*stage.workers == 0) return "on the loop's own thread";
  return shown_data(stage.workers, shown_number(stage.workers)) +
         (*stage.workers == 1 ? " thread" : " threads");
}

/// What a pool of threads can do is worked out from its stages.
std::string stage_data(const ShownStage& stage, std::optional<double> number,
                       const std::string& shown) {
  return stage.of_pool.empty() ? shown_data(number, shown) : escaped(shown);
}

std::string about_stage(const ShownStage& stage) {
  std::string text = threads_of(stage);
  auto add = [&](const char* name, std::optional<double> number,
                 const std::string& shown) {
    if (number)
      text +=
          (text.empty() ? "" : " · ") +
          element("span", "", name + (" " + stage_data(stage, number, shown)));
  };
  add("busy", stage.busy, shown_share(stage.busy));
  if (stage.p50_ms) {
    add("p50", stage.p50_ms, shown_number(stage.p50_ms) + " ms");
    add("p99", stage.p99_ms, shown_number(stage.p99_ms) + " ms");
  }
  add("longest", stage.max_ms, shown_number(stage.max_ms) + " ms");
  add("waits for input", stage.waits_for_input,
      shown_share(stage.waits_for_input));
  add("waits for room", stage.waits_for_room,
      shown_share(stage.waits_for_room));
  return text;
}

std::string stage_box(const ShownStage& stage, double widest,
                      std::optional<double> needed) {
  std::string title = element("b", "", escaped(stage.name));
  if (!stage.of_pool.empty()) {
    std::string names;
    for (const std::string& name : stage.of_pool)
      names += (names.empty() ? "" : ", ") + name;
    title = element("b", "", escaped(stage.name + " threads")) + " " +
            escaped(names) + " together";
  }
  title = element("span", "", title);
  const bool beyond = *stage.rate > widest;
  std::string track = "<i class=\"rate" + std::string(beyond ? " beyond" : "") +
                      "\" style=\"width:" + percent(*stage.rate / widest) +
                      "\"></i>";
  if (needed)
    track += "<i class=\"needed\" style=\"left:" + percent(*needed / widest) +
             "\"></i>";
  return div(stage.limits ? "stage limits" : "stage",
             div("name", title + element("span", "of",
                                         stage_data(stage, stage.rate,
                                                    shown_rate(stage.rate)) +
                                             "/s")) +
                 div("track", track) + div("about", about_stage(stage)));
}

/// Boxes as wide as the stages are fast, up to twice what is needed.
std::string pipeline_section(const Json& report) {
  const std::vector<ShownStage> stages = shown_stages(report);
  if (stages.empty()) return "";
  const std::optional<double> needed = needed_rate(report);
  const std::optional<double> aim =
      needed ? needed : number_in(report, {"samples_per_s"});
  double widest = aim.value_or(0) * 2;
  if (widest <= 0)
    for (const ShownStage& stage : stages)
      widest = std::max(widest, *stage.rate);
  std::string text =
      "<p>How many samples per second each stage can do, in the order of the "
      "data. ";
  if (needed)
    text +=
        "The line shows what the accelerator would take if it never waited: " +
        shown_rate(needed) +
        "/s. Boxes that reach the right edge can do more than twice as many.";
  text += "</p>\n";
  for (const ShownStage& stage : stages)
    text += stage_box(stage, widest, needed);
  return section("The pipeline", text);
}

/// A curve for each owner of the device's memory, and one of all.
std::string memory_curves(const Json& report) {
  constexpr std::pair<const char*, const char*> kShown[] = {
      {"", "all of the device"},      {"parameters", "parameters"},
      {"gradients", "gradients"},     {"optimizer", "optimizer"},
      {"activations", "activations"}, {"cache", "cached rows"},
      {"look_ahead", "batches"}};
  std::string text;
  for (const auto& [owner, shown] : kShown) {
    const std::vector<Curve> curve = {
        {.style = "one", .points = memory_over_time(report, owner)}};
    const std::string chart = line_chart(curve);
    if (chart.empty()) continue;
    const auto [low, high] = range_of(curve);
    if (high <= 0) continue;
    const std::string least = shown_size(low), most = shown_size(high);
    text += div(
        "curve",
        div("name", element("b", "", shown) +
                        element("span", "of",
                                least == most ? most : least + " to " + most)) +
            chart +
            time_axis(curve[0].points.front().first,
                      curve[0].points.back().first));
  }
  return text.empty() ? "" : div("curves", text);
}

/// What was given up where a step did not fit.
std::string shortage_table(const Json& report) {
  std::vector<std::vector<std::string>> rows = {
      {"step", "what was given up", "rows at once before", "after", "exact"}};
  for (const Json& event : list_in(report, {"oom"})) {
    const Json* exact = found_in(event, {"exact"});
    rows.push_back({number_cell(event, {"step"}),
                    escaped(spoken(text_in(event, {"action"}))),
                    number_cell(event, {"from"}), number_cell(event, {"to"}),
                    exact != nullptr && *exact == Json(false) ? "no" : "yes"});
  }
  return rows.size() == 1 ? ""
                          : "<p>Steps that ran out of memory, and what was "
                            "given up to repeat them. Steps count from "
                            "0.</p>\n" +
                                table(rows);
}

std::string memory_section(const Json& report) {
  const std::vector<MemoryLine> lines = memory_lines(report);
  if (lines.empty()) return "";
  double most = 1;
  for (const MemoryLine& line : lines)
    most = std::max({most, line.planned.value_or(0), line.used.value_or(0),
                     line.peak.value_or(0)});
  auto bar = [&](const char* style, std::optional<double> bytes) {
    if (!bytes) return std::string(element("td", "", "–"));
    return "<td>" + shown_size(bytes) + "<div class=\"small\"><i class=\"" +
           style + "\" style=\"width:" + percent(*bytes / most) +
           "\"></i></div></td>";
  };
  std::string text =
      "<div class=\"wide\"><table class=\"memory\">\n<thead><tr><th>owner</th>"
      "<th>planned</th><th>used at the end</th><th>at most</th></tr></thead>\n"
      "<tbody>";
  for (const MemoryLine& line : lines)
    text += "<tr><td>" + escaped(line.owner) + "</td>" +
            bar("planned", line.planned) + bar("used", line.used) +
            bar("used", line.peak) + "</tr>\n";
  return section("Memory", text + "</tbody></table></div>\n" +
                               memory_curves(report) + shortage_table(report));
}

/// Numbers of an epoch that have a column of their own or none.
bool is_epochs_own(const std::string& name) {
  static const std::set<std::string> kOwn = {
      "epoch", "seconds", "au", "samples", "train_loss", "val_loss", "use"};
  return kOwn.contains(name);
}

std::vector<std::string> measures_of(const Json::Array& epochs) {
  std::vector<std::string> names;
  for (const Json& epoch : epochs) {
    if (!epoch.is_object()) continue;
    for (const auto& [name, value] : epoch.object())
      if (value.is_number() && !is_epochs_own(name) &&
          std::ranges::find(names, name) == names.end())
        names.push_back(name);
  }
  return names;
}

/// "1.2 (1.9)": the mean and, where it is another, the highest.
std::string use_cell(const Json& epoch, const char* name,
                     std::string (*shown)(std::optional<double>)) {
  auto mean = number_in(epoch, {"use", name, "mean"});
  auto max = number_in(epoch, {"use", name, "max"});
  if (!mean) return "n/a";
  std::string text = shown_data(mean, shown(mean));
  if (max && shown(max) != shown(mean))
    text += " (" + shown_data(max, shown(max)) + ")";
  return text;
}

struct UseColumn {
  const char* name;
  const char* heading;
  std::string (*shown)(std::optional<double>);
};
constexpr UseColumn kUse[] = {{"cpus", "CPUs", shown_number},
                              {"resident_bytes", "RAM", shown_size},
                              {"gpu_utilisation", "GPU", shown_share},
                              {"device_bytes", "device memory", shown_size},
                              {"temperature_c", "°C", shown_number},
                              {"power_w", "W", shown_number}};

std::string epochs_table(const Json::Array& epochs) {
  const std::vector<std::string> measures = measures_of(epochs);
  auto any = [&](std::initializer_list<std::string_view> keys) {
    return std::ranges::any_of(epochs, [&](const Json& epoch) {
      return number_in(epoch, keys).has_value();
    });
  };
  std::vector<std::vector<std::string>> rows(epochs.size() + 1);
  auto column = [&](const std::string& heading, auto cell) {
    rows[0].push_back(escaped(heading));
    for (std::size_t i = 0; i < epochs.size(); ++i)
      rows[i + 1].push_back(cell(epochs[i]));
  };
  auto numbers = [&](const char* heading, const char* key) {
    if (any({key}))
      column(heading, [=](const Json& e) { return number_cell(e, {key}); });
  };
  column("epoch (from 1)", [](const Json& epoch) {
    auto number = number_in(epoch, {"epoch"});
    return shown_data(number, number ? shown_number(*number + 1) : "n/a");
  });
  column("time", [](const Json& epoch) {
    auto time = number_in(epoch, {"seconds"});
    return shown_data(time, shown_seconds(time));
  });
  column("AU", [](const Json& epoch) { return share_cell(epoch, {"au"}); });
  numbers("samples", "samples");
  numbers("train loss", "train_loss");
  numbers("val loss", "val_loss");
  for (const std::string& name : measures) {
    column(spoken(name), [&](const Json& e) { return number_cell(e, {name}); });
  }
  for (const UseColumn& use : kUse)
    if (any({"use", use.name, "mean"}))
      column(use.heading, [&](const Json& epoch) {
        return use_cell(epoch, use.name, use.shown);
      });
  return table(rows);
}

Curve curve_over_epochs(const Json::Array& epochs, std::string_view key,
                        const char* style) {
  Curve curve{.style = style, .points = {}};
  for (const Json& epoch : epochs)
    if (auto at = number_in(epoch, {"epoch"}))
      if (auto loss = number_in(epoch, {key}))
        curve.points.emplace_back(*at + 1, *loss);
  return curve;
}

/// Small curves of the metrics beside the loss, and of the learning rate.
std::string small_curves(const Json& report, const Json::Array& epochs,
                         std::optional<double> best) {
  constexpr std::size_t kMost = 6;
  std::string text;
  auto add = [&](const std::string& name, Curve curve, const std::string& from,
                 const std::string& to, std::optional<double> mark) {
    const std::string chart = line_chart({curve}, mark);
    if (chart.empty()) return;
    const auto [low, high] = range_of({curve});
    text += div(
        "curve",
        div("name",
            element("b", "", escaped(name)) +
                element("span", "of",
                        shown_number(low) + " to " + shown_number(high))) +
            chart +
            div("axis", element("span", "", from) + element("span", "", to)));
  };
  const std::string last = "epoch " + std::to_string(epochs.size());
  std::size_t shown = 0;
  for (const std::string& name : measures_of(epochs))
    if (name.starts_with("val_") && shown++ < kMost)
      add(spoken(name), curve_over_epochs(epochs, name, "val"), "epoch 1", last,
          best);
  Curve rates{.style = "one", .points = {}};
  for (const Json& point : list_in(report, {"learning_rate", "points"}))
    if (point.is_array() && point.array().size() == 2 &&
        point.array()[0].is_number() && point.array()[1].is_number())
      rates.points.emplace_back(point.array()[0].number() + 1,
                                point.array()[1].number());
  if (!rates.points.empty())
    add("learning rate", rates, "step 1",
        "step " + shown_number(rates.points.back().first), std::nullopt);
  return text.empty() ? "" : div("curves", text);
}

std::string epochs_section(const Json& report) {
  const Json::Array& epochs = list_in(report, {"epochs"});
  if (epochs.empty()) return "";
  const std::vector<Curve> losses = {
      curve_over_epochs(epochs, "train_loss", "train"),
      curve_over_epochs(epochs, "val_loss", "val")};
  std::optional<double> best = number_in(report, {"best", "epoch"});
  if (best) *best += 1;
  std::string text;
  if (const std::string line = best_line(report); !line.empty())
    text += "<p>" + escaped(line) + ".</p>\n";
  if (const std::string chart = line_chart(losses, best); !chart.empty()) {
    const auto [low, high] = range_of(losses);
    text +=
        "<ul class=\"legend\"><li><i class=\"train\"></i>train loss</li>"
        "<li><i class=\"val\"></i>val loss</li>" +
        std::string(best ? "<li><i class=\"best\"></i>best</li>" : "") +
        "<li>" + shown_number(low) + " to " + shown_number(high) +
        "</li></ul>\n" + chart + "\n" +
        div("axis",
            element("span", "", "epoch 1") +
                element("span", "", "epoch " + std::to_string(epochs.size())));
  }
  text += small_curves(report, epochs, best);
  constexpr std::size_t kSeen = 12;  // rows, without scrolling
  if (epochs.size() > kSeen)
    text += element("p", "because",
                    std::to_string(epochs.size()) +
                        " epochs: scroll in the table to see all of them.");
  text += epochs_table(epochs);
  if (std::ranges::any_of(epochs, [](const Json& epoch) {
        return found_in(epoch, {"use"}) != nullptr;
      }))
    text +=
        "<p class=\"because\">Use of the machine: the mean over the epoch, "
        "with the highest value in brackets.</p>\n";
  return section("Epochs", text);
}

std::string shown_range(double low, double high, const UseColumn& column) {
  const std::string least = column.shown(low), most = column.shown(high);
  return least == most ? most : least + " to " + most;
}

std::string curves_section(const Json& report) {
  constexpr UseColumn kLoss = {"loss", "train loss", shown_number};
  std::string text;
  auto add = [&](const UseColumn& column) {
    const std::vector<Curve> curve = {
        {.style = "one", .points = curve_of(report, column.name)}};
    const std::string chart = line_chart(curve);
    if (chart.empty()) return;
    const auto [low, high] = range_of(curve);
    text += div(
        "curve",
        div("name", element("b", "", column.heading) +
                        element("span", "of", shown_range(low, high, column))) +
            chart +
            time_axis(curve[0].points.front().first,
                      curve[0].points.back().first));
  };
  add(kLoss);
  for (const UseColumn& column : kUse) add(column);
  return section("Over time", text.empty() ? "" : div("curves", text));
}

std::string worst_section(const Json& report) {
  const Json::Array& steps = list_in(report, {"worst_steps"});
  // The loop of another loader has no epochs, and one time for each step.
  const bool of_run = std::ranges::any_of(steps, [](const Json& step) {
    return number_in(step, {"epoch"}).has_value();
  });
  std::vector<std::vector<std::string>> rows = {
      {"epoch", "step", "ms", "where its time went", "first samples"}};
  for (const Json& step : steps) {
    std::string went, samples;
    for (const PartName& part : kParts)
      if (auto share = number_in(step, {"parts", part.key});
          share && *share >= 0.005)
        went += (went.empty() ? "" : ", ") + std::string(part.brief) + " " +
                shown_data(share, shown_share(share));
    for (const Json& key : list_in(step, {"samples"}))
      samples += (samples.empty() ? "" : ", ") +
                 escaped(key.is_string() ? key.string() : key.dump());
    auto epoch = number_in(step, {"epoch"}), at = number_in(step, {"step"});
    rows.push_back({shown_data(epoch, epoch ? shown_number(*epoch + 1) : "n/a"),
                    shown_data(at, at ? shown_number(*at + 1) : "n/a"),
                    number_cell(step, {"ms"}), went, samples});
  }
  if (rows.size() == 1) return "";
  if (!of_run)
    for (std::vector<std::string>& row : rows) row = {row[1], row[2], row[4]};
  return section("The longest steps",
                 (of_run ? "<p>Epochs and steps count from 1; samples by their "
                           "keys.</p>\n"
                         : "<p>Steps count from 1.</p>\n") +
                     table(rows));
}

std::string tuner_section(const Json& report) {
  std::vector<std::vector<std::string>> rows = tuner_rows(report);
  if (rows.empty()) return "";
  for (std::vector<std::string>& row : rows)
    for (std::string& cell : row) cell = escaped(cell);
  const std::string rests = text_in(report, {"tuner", "rests"});
  return section(
      "Changes by the tuner",
      "<p>Times count the seconds in which the tuner measured. Gains are "
      "predicted gains of the rate, each together with the changes that follow "
      "it.</p>\n" +
          table(rows) +
          (rests.empty()
               ? ""
               : element("p", "", "In the end: " + escaped(rests) + ".")));
}

std::string folded(const std::string& title, const Json* json) {
  if (json == nullptr) return "";
  std::vector<std::vector<std::string>> rows = {{"", ""}};
  for (const auto& [path, value] : flattened(*json))
    rows.push_back({escaped(path), escaped(value)});
  if (rows.size() == 1) return "";
  return "<details><summary>" + title + "</summary>\n" + table(rows) +
         "</details>\n";
}

}  // namespace

std::string report_html(const Json& report) {
  if (has_folds(report)) return folds_html(report);
  const std::string run = name_of(report);
  std::string about = headline_metric(report);
  if (const std::string most = greatest_part(report); !most.empty())
    about += (about.empty() ? "" : " · ") + most;
  std::string inside = top_of(report);
  inside += epochs_section(report);
  inside += texts_section(report);
  inside += classes_section(report);
  inside += residuals_section(report);
  inside += worst_rows_section(report);
  inside += parts_section(report);
  inside += pipeline_section(report);
  inside += tuner_section(report);
  inside += curves_section(report);
  inside += memory_section(report);
  inside += worst_section(report);
  inside += "<section>\n" + folded("Settings", found_in(report, {"settings"})) +
            folded("Machine", found_in(report, {"machine"})) +
            folded("Data set", found_in(report, {"dataset"})) +
            folded("Where rows could be kept", found_in(report, {"plan"})) +
            "</section>\n";
  inside += found_in(report, {"loop"}) != nullptr
                ? "<footer>Made by Penstock.</footer>\n"
                : "<footer>Made from report.json by Penstock; <code>penstock "
                  "explain RUN --html FILE</code> makes it again.</footer>\n";
  return page((run.empty() ? "A run of Penstock" : run) +
                  (about.empty() ? "" : ": " + about),
              inside);
}

}  // namespace penstock
