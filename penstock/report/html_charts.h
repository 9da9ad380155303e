#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/report/report_facts.h"

namespace penstock {

/// A text of somebody else's as HTML, in elements and in attributes.
std::string escaped(std::string_view text);

/// What people read of a number of the report, and beside it the number as it
/// stands there: `<data value="0.71234">71.2 %</data>`.
std::string shown_data(std::optional<double> number, const std::string& shown);

/// The shares of the parts over time, stacked; empty where nothing is known.
/// No text is in the drawing, which is stretched to its place.
std::string stacked_parts(const std::vector<TimeSlice>& slices);

/// Lines over one axis, all of them to one scale from 0, or from the lowest
/// where that is nearer; empty where no line has two points.
struct Curve {
  std::string style;  ///< the class of the line
  std::vector<std::pair<double, double>> points;
};
/// `mark`: a place on the axis, for an upright line.
std::string line_chart(const std::vector<Curve>& curves,
                       std::optional<double> mark = {});

/// The lowest and the highest value of the curves, as the chart draws them.
std::pair<double, double> range_of(const std::vector<Curve>& curves);

}  // namespace penstock
