#include "penstock/report/html_charts.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "penstock/base/printable.h"
namespace penstock {
namespace {

// The drawings' own units; they are stretched to the width of the page.
constexpr double kWidth = 1000, kHeight = 100;

std::string at(double x, double y) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.1f %.2f", x, y);
  return text;
}

/// A band of the stack: along its upper edge, and back along the lower one.
std::string band(const std::vector<TimeSlice>& slices, const std::string& style,
                 const std::vector<double>& from,
                 const std::vector<double>& to) {
  const double end = slices.back().to_s;
  auto x = [&](double time) { return kWidth * time / end; };
  auto y = [](double share) { return kHeight * (1 - share); };
  std::string path;
  for (std::size_t i = 0; i < slices.size(); ++i)
    path += (i == 0 ? "M" : "L") + at(x(slices[i].from_s), y(to[i])) + "L" +
            at(x(slices[i].to_s), y(to[i]));
  for (std::size_t i = slices.size(); i-- > 0;)
    path += "L" + at(x(slices[i].to_s), y(from[i])) + "L" +
            at(x(slices[i].from_s), y(from[i]));
  return "<path class=\"" + style + "\" d=\"" + path + "Z\"/>";
}

std::string svg(const std::string& drawing, const char* style,
                const char* what) {
  return std::string("<svg class=\"") + style +
         "\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" "
         "role=\"img\" aria-label=\"" +
         what + "\">" + drawing + "</svg>";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : printable_lines(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string shown_data(std::optional<double> number, const std::string& shown) {
  if (!number) return escaped(shown);
  return "<data value=\"" + Json(*number).dump() + "\">" + escaped(shown) +
         "</data>";
}

std::string stacked_parts(const std::vector<TimeSlice>& slices) {
  if (slices.empty() || slices.back().to_s <= 0) return "";
  std::vector<double> below(slices.size(), 0.0);
  std::string drawing;
  auto add = [&](const std::string& style, auto share) {
    std::vector<double> above = below;
    bool any = false;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      above[i] += share(slices[i]);
      any |= above[i] > below[i];
    }
    if (any) drawing += band(slices, style, below, above);
    below = above;
  };
  for (std::size_t part = 0; part < kParts.size(); ++part)
    add(kParts[part].key,
        [part](const TimeSlice& s) { return s.shares[part]; });
  add("outside", [](const TimeSlice& slice) { return slice.outside; });
  return svg(drawing, "stack", "where the time went, over the run");
}

std::pair<double, double> range_of(const std::vector<Curve>& curves) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Curve& curve : curves)
    for (const auto& [x, y] : curve.points)
      low = std::min(low, y), high = std::max(high, y);
  if (low > 0 && low < high / 2) low = 0;
  return {low, high};
}

std::string line_chart(const std::vector<Curve>& curves,
                       std::optional<double> mark) {
  const auto [low, high] = range_of(curves);
  double from = std::numeric_limits<double>::infinity(), to = -from;
  for (const Curve& curve : curves)
    for (const auto& [x, y] : curve.points)
      from = std::min(from, x), to = std::max(to, x);
  if (!(to > from)) return "";
  const double height = high > low ? high - low : 1;
  std::string drawing;
  if (mark && *mark >= from && *mark <= to) {
    const double x = kWidth * (*mark - from) / (to - from);
    drawing +=
        "<path class=\"best\" d=\"M" + at(x, 0) + "L" + at(x, kHeight) + "\"/>";
  }
  for (const Curve& curve : curves) {
    std::string points;
    for (const auto& [x, y] : curve.points)
      points += at(kWidth * (x - from) / (to - from),
                   // Not quite to the edges, where half a line is cut off.
                   4 + 92 * (1 - (high > low ? (y - low) / height : 0.5))) +
                " ";
    drawing +=
        "<polyline class=\"" + curve.style + "\" points=\"" + points + "\"/>";
  }
  return svg(drawing, "lines", "a curve over the run");
}

}  // namespace penstock
