#include "penstock/cli/columns_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "penstock/base/base.h"
#include "penstock/base/formatted.h"
#include "penstock/base/printable.h"
#include "penstock/base/shown.h"
#include "penstock/base/table_text.h"

namespace penstock {
namespace {

constexpr std::size_t kWidestLimit = 20;
constexpr std::int64_t kMostLeftOut = 20;

std::string percent(std::int64_t part, std::int64_t all) {
  if (part == 0 || all == 0) return "0 %";
  const double share = static_cast<double>(part) / static_cast<double>(all);
  return share < 0.01 ? formatted("%.2g %%", 100 * share)
                      : shown_percent(share, 0);
}

std::string shown_limit(const Json& limit) {
  if (limit.is_null()) return "-";
  if (limit.is_string()) return beginning(limit.string(), kWidestLimit);
  if (std::holds_alternative<std::int64_t>(limit.value())) return limit.dump();
  char text[32];
  std::snprintf(text, sizeof(text), "%.5g", limit.number());
  return text;
}

std::string shown_distinct(const Json& column) {
  const Json& distinct = *column.find("distinct");
  if (distinct.is_null()) return "-";
  const bool exact = std::get<bool>(column.find("distinct_exact")->value());
  return (exact ? "" : "~") + std::to_string(distinct.integer());
}

/// A bar a range, as high as its rows are many.
std::string bars(const Json& histogram) {
  static const char* const kBars[] = {" ", "▁", "▂", "▃", "▄",
                                      "▅", "▆", "▇", "█"};
  std::int64_t most = 1;
  for (const Json& rows : histogram.array())
    most = std::max(most, rows.integer());
  std::string text;
  for (const Json& rows : histogram.array())
    text += kBars[(rows.integer() * 8 + most - 1) / most];
  return text;
}

std::string most_frequent(const Json& top, std::int64_t rows) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, top.array().size()); ++i) {
    const Json& one = top.array()[i];
    text += (i == 0 ? "" : ", ") + one.find("value")->string() + " " +
            percent(one.find("rows")->integer(), rows);
  }
  return text;
}

/// Few values are named; the spread of others is drawn.
std::string spread(const Json& column, std::int64_t rows) {
  constexpr std::int64_t kFew = 10;
  const Json* top = column.find("top");
  const Json* histogram = column.find("histogram");
  if (top != nullptr &&
      (histogram == nullptr || column.find("distinct")->integer() <= kFew))
    return most_frequent(*top, rows);
  return histogram != nullptr ? bars(*histogram) : "";
}

}  // namespace

std::string columns_text(const Json& columns, std::int64_t rows) {
  std::vector<std::vector<std::string>> lines = {
      {"column", "type", "NULL", "distinct", "min", "max", "values"}};
  for (const Json& column : columns.array())
    lines.push_back({beginning(column.find("name")->string()) +
                         (column.find("primary_key") != nullptr ? " (key)"
                          : column.find("index") != nullptr     ? " (index)"
                                                                : ""),
                     beginning(column.find("type")->string(), kWidestLimit),
                     percent(column.find("nulls")->integer(), rows),
                     shown_distinct(column), shown_limit(*column.find("min")),
                     shown_limit(*column.find("max")), spread(column, rows)});
  return table_text(lines);
}

std::string left_out_text(const Json& document) {
  const Json* left_out = document.find("left_out");
  if (left_out == nullptr) return {};
  std::string text = "\nleft out:\n";
  std::int64_t shown = 0;
  for (const Json& one : left_out->array()) {
    if (++shown > kMostLeftOut)
      return text + "  ... (--json lists all " +
             std::to_string(left_out->array().size()) + ")\n";
    text += "  " +
            printable(one.find("name")->string() + ": " +
                      one.find("why")->string() + "; " +
                      one.find("next")->string()) +
            "\n";
  }
  return text;
}

}  // namespace penstock
