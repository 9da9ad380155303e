#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/report/html_charts.h"

namespace penstock {

// Pieces of a page. What is `inside` is HTML already; names from outside
// go through escaped() first.

std::string element(const std::string& name, const std::string& style,
                    const std::string& inside);
std::string div(const std::string& style, const std::string& inside);
/// A whole page. The title is text, not HTML.
std::string page(const std::string& title, const std::string& inside);
/// A section with its heading; empty if there is nothing inside.
std::string section(const std::string& title, const std::string& inside);
/// "41.27%", of a share: a length in a style.
std::string percent(double share);
/// Rows of cells; the first are the headings. It scrolls where it is too wide.
std::string table(const std::vector<std::vector<std::string>>& rows);
/// A number of the document as a cell; "n/a" where it is not known.
std::string number_cell(const Json& of,
                        std::initializer_list<std::string_view> keys);
std::string share_cell(const Json& of,
                       std::initializer_list<std::string_view> keys);
/// A tile: a number in large letters, and below it what it is.
std::string figure(const std::string& number, const std::string& name);
/// "val_macro_f1" -> "val macro f1".
std::string spoken(std::string name);

}  // namespace penstock
