#include "penstock/report/html_outcomes.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "penstock/report/html_elements.h"

namespace penstock {
namespace {

/// A class, or several, or a number.
std::string shown_value(const Json& value) {
  if (value.is_number())
    return shown_data(value.number(), shown_number(value.number()));
  if (!value.is_array())
    return escaped(value.is_string() ? value.string() : value.dump());
  std::string text;
  for (const Json& each : value.array())
    text += (text.empty() ? "" : ", ") + shown_value(each);
  return text.empty() ? "none" : text;
}

std::string member_cell(const Json& of, std::string_view key) {
  const Json* value = found_in(of, {key});
  return value == nullptr ? "n/a" : shown_value(*value);
}

/// "the class 'Adelie' for every row".
std::string constant_guess(const Json& report) {
  const Json* of_class = found_in(report, {"baseline", "class"});
  if (of_class != nullptr) return "the class " + shown_value(*of_class);
  const Json* place = found_in(report, {"baseline", "place"});
  if (place != nullptr) return "the mean place, " + shown_value(*place);
  auto mean = number_in(report, {"baseline", "mean"});
  return mean ? "the mean, " + shown_number(mean) : "";
}

/// A cell of the matrix, the darker the larger its share of the row.
std::string count_cell(double count, double of_row, bool right) {
  if (count == 0) return "<td class=\"count zero\">0</td>";
  char strength[32];
  std::snprintf(strength, sizeof(strength), "%.0f",
                15 + 70 * (of_row > 0 ? count / of_row : 0));
  return "<td class=\"count " + std::string(right ? "right" : "wrong") +
         "\" style=\"--strength:" + strength + "%\">" +
         shown_data(count, shown_number(count)) + "</td>";
}

std::string matrix(const Json& report) {
  const Json::Array& counts = list_in(report, {"confusion", "counts"});
  const Json::Array& classes = list_in(report, {"confusion", "classes"});
  if (counts.empty()) return "";
  auto name_of = [&](std::size_t at) {
    return at < classes.size() ? shown_value(classes[at]) : "all others";
  };
  std::string text =
      "<div class=\"wide\"><table class=\"matrix\">\n<thead><tr><th>truth</th>";
  for (std::size_t at = 0; at < counts.size(); ++at)
    text += "<th class=\"up\"><span>" + name_of(at) + "</span></th>";
  text += "</tr></thead>\n<tbody>";
  for (std::size_t truth = 0; truth < counts.size(); ++truth) {
    if (!counts[truth].is_array()) continue;
    double all = 0;
    for (const Json& count : counts[truth].array())
      all += count.is_number() ? count.number() : 0;
    text += "<tr><th>" + name_of(truth) + "</th>";
    for (std::size_t guess = 0; guess < counts[truth].array().size(); ++guess) {
      const Json& count = counts[truth].array()[guess];
      text += count_cell(count.is_number() ? count.number() : 0, all,
                         truth == guess);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

/// Points over two axes of one scale, and the line where a guess is right.
std::string scatter(const std::vector<std::pair<double, double>>& points) {
  double low = points[0].first, high = low;
  for (const auto& [truth, guess] : points) {
    low = std::min({low, truth, guess});
    high = std::max({high, truth, guess});
  }
  const double width = high > low ? high - low : 1;
  auto place = [&](double number) { return 2 + 96 * (number - low) / width; };
  std::string text =
      "<svg class=\"scatter\" viewBox=\"0 0 100 100\" role=\"img\" "
      "aria-label=\"guesses over truths\"><path class=\"right\" "
      "d=\"M2 98L98 2\"/>";
  for (const auto& [truth, guess] : points) {
    char circle[96];
    std::snprintf(circle, sizeof(circle),
                  "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"0.9\"/>", place(truth),
                  100 - place(guess));
    text += circle;
  }
  return text + "</svg>\n" +
         div("axis", element("span", "", "truth " + shown_number(low)) +
                         element("span", "", shown_number(high)));
}

std::string bars(const Json::Array& counts) {
  double most = 1;
  for (const Json& count : counts)
    most = std::max(most, count.is_number() ? count.number() : 0);
  std::string text;
  for (const Json& count : counts)
    text += "<i style=\"height:" +
            percent((count.is_number() ? count.number() : 0) / most) +
            "\"></i>";
  return div("bars", text);
}

/// Pictures, of rows that have one, as data.
std::string picture_cell(const Json& row) {
  const std::string data = text_in(row, {"thumbnail"});
  constexpr std::string_view kBegin = "data:image/png;base64,";
  const bool safe = data.starts_with(kBegin) &&
                    std::ranges::all_of(data.substr(kBegin.size()), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '+' || c == '/' ||
                             c == '=';
                    });
  return safe ? "<img alt=\"\" src=\"" + data + "\">" : "";
}

}  // namespace

std::string metric_tiles(const Json& report) {
  const Json* metrics = found_in(report, {"metrics", "val"});
  std::string text;
  if (metrics == nullptr || !metrics->is_object()) return text;
  constexpr std::size_t kMost = 5;
  std::size_t tiles = 0;
  for (const auto& [name, value] : metrics->object()) {
    if (!value.is_number() || tiles == kMost) continue;
    std::string about = escaped("val " + spoken(name));
    if (auto constant = number_in(report, {"baseline", "val_" + name}))
      about += " · baseline " + shown_data(constant, shown_number(constant));
    text += figure(number_cell(*metrics, {name}), about);
    ++tiles;
  }
  return text;
}

std::string headline_metric(const Json& report) {
  for (const char* name :
       {"accuracy", "micro_f1", "rmse", "perplexity", "median_km", "loss"})
    if (auto value = number_in(report, {"metrics", "val", name}))
      return "val " + spoken(name) + " " + shown_number(value);
  return "";
}

std::string best_line(const Json& report) {
  auto epoch = number_in(report, {"best", "epoch"});
  if (!epoch) return "";
  const std::string metric = text_in(report, {"best", "metric"});
  auto value = number_in(report, {"best", "value"});
  return "Best: " + (metric.empty() ? "validation" : spoken(metric)) +
         (value ? " " + shown_number(value) : "") + " in epoch " +
         shown_number(*epoch + 1);
}

std::string classes_section(const Json& report) {
  std::string text = matrix(report);
  if (!text.empty())
    text =
        "<p>Held-out rows by their class (lines) and the class that the "
        "model says (columns).</p>\n" +
        text;
  auto others = number_in(report, {"confusion", "others"});
  if (others && *others > 0)
    text += element("p", "because",
                    "The classes with the most rows are shown; " +
                        shown_number(others) + " more are counted together.");
  const std::string constant = constant_guess(report);
  if (auto share = number_in(report, {"baseline", "val_accuracy"});
      share && !constant.empty())
    text += "<p>Baseline: guessing " + constant +
            " for every row is right in " +
            shown_data(share, shown_share(share)) + ".</p>\n";
  std::vector<std::vector<std::string>> rows = {
      {"class", "rows", "precision", "recall"}};
  for (const Json& each : list_in(report, {"by_class"}))
    rows.push_back({member_cell(each, "class"), number_cell(each, {"rows"}),
                    share_cell(each, {"precision"}),
                    share_cell(each, {"recall"})});
  if (rows.size() > 1) text += table(rows);
  return section("What it distinguishes", text);
}

namespace {

std::string histogram_of(const Json& report, const std::string& name) {
  auto from = number_in(report, {"residuals", "histogram", "from"});
  auto to = number_in(report, {"residuals", "histogram", "to"});
  const std::string unit = text_in(report, {"residuals", "unit"});
  const std::string behind = unit.empty() ? "" : " " + escaped(unit);
  return div(
      "curve",
      div("name",
          element("b", "", name) +
              element("span", "of",
                      "mean " + number_cell(report, {"residuals", "mean"}) +
                          behind)) +
          bars(list_in(report, {"residuals", "histogram", "counts"})) +
          div("axis", element("span", "", shown_number(from) + behind) +
                          element("span", "", shown_number(to) + behind)));
}

/// "Baseline: guessing the mean, 3.5, for every row is off by 2.1 (RMSE)."
std::string baseline_line(const Json& report) {
  const std::string constant = constant_guess(report);
  if (constant.empty()) return "";
  std::string off;
  if (auto rmse = number_in(report, {"baseline", "val_rmse"}))
    off = shown_data(rmse, shown_number(rmse)) + " (RMSE)";
  if (auto km = number_in(report, {"baseline", "val_median_km"}))
    off = shown_data(km, shown_number(km)) + " km (median)";
  if (off.empty()) return "";
  return "<p>Baseline: guessing " + constant + " for every row is off by " +
         off + ".</p>\n";
}

}  // namespace

std::string residuals_section(const Json& report) {
  if (list_in(report, {"residuals", "histogram", "counts"}).empty()) return "";
  std::vector<std::pair<double, double>> points;
  for (const Json& point : list_in(report, {"residuals", "points"}))
    if (point.is_array() && point.array().size() == 2 &&
        point.array()[0].is_number() && point.array()[1].is_number())
      points.emplace_back(point.array()[0].number(), point.array()[1].number());
  if (points.empty())
    return section("How far its places are off",
                   baseline_line(report) +
                       div("curves", histogram_of(report, "distance")));
  return section(
      "How far its numbers are off",
      baseline_line(report) +
          div("curves",
              div("curve", div("name", element("b", "", "guess over truth")) +
                               scatter(points)) +
                  histogram_of(report, "guess minus truth")));
}

std::string worst_rows_section(const Json& report) {
  struct Shown {
    const char* key;
    const char* name;
  };
  constexpr Shown kColumns[] = {{"thumbnail", ""},    {"key", "row"},
                                {"truth", "truth"},   {"guess", "guess"},
                                {"tokens", "tokens"}, {"km", "km off"},
                                {"loss", "loss"}};
  const Json::Array& worst = list_in(report, {"worst_rows"});
  if (worst.empty()) return "";
  std::vector<Shown> columns;
  for (const Shown& column : kColumns)
    if (std::ranges::any_of(worst, [&](const Json& row) {
          return found_in(row, {column.key}) != nullptr;
        }))
      columns.push_back(column);
  std::vector<std::vector<std::string>> rows(1);
  for (const Shown& column : columns) rows[0].emplace_back(column.name);
  for (const Json& row : worst) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const Shown& column : columns)
      cells.push_back(column.key == std::string_view("thumbnail")
                          ? picture_cell(row)
                          : member_cell(row, column.key));
  }
  const bool places = found_in(worst[0], {"km"}) != nullptr;
  return section("The rows it is most wrong about",
                 std::string("<p>Held-out rows by their keys, ") +
                     (places ? "those that are furthest off"
                             : "those of the highest loss") +
                     " first.</p>\n" + table(rows));
}

std::string texts_section(const Json& report) {
  const Json::Array& validations = list_in(report, {"texts"});
  std::string text;
  for (auto of = validations.rbegin(); of != validations.rend(); ++of) {
    std::string written;
    for (const Json& each : list_in(*of, {"texts"}))
      written +=
          element("p", "sample",
                  element("span", "", escaped(text_in(each, {"prompt"}))) +
                      escaped(text_in(each, {"text"}))) +
          "\n";
    if (written.empty()) continue;
    auto epoch = number_in(*of, {"epoch"}), step = number_in(*of, {"step"});
    const std::string when = "epoch " +
                             (epoch ? shown_number(*epoch + 1) : "n/a") +
                             ", step " + (step ? shown_number(*step) : "n/a");
    text += of == validations.rbegin()
                ? "<p>After " + when + ":</p>\n" + written
                : "<details><summary>After " + when + "</summary>\n" + written +
                      "</details>\n";
  }
  if (text.empty()) return "";
  return section("What it writes",
                 "<p>The model continues the first tokens of held-out rows, "
                 "always with the most likely token.</p>\n" +
                     text);
}

}  // namespace penstock
