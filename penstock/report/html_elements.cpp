#include "penstock/report/html_elements.h"

#include <algorithm>
#include <cstdio>

#include "penstock/report/html_style.h"

namespace penstock {

std::string element(const std::string& name, const std::string& style,
                    const std::string& inside) {
  return "<" + name + (style.empty() ? "" : " class=\"" + style + "\"") + ">" +
         inside + "</" + name + ">";
}

std::string div(const std::string& style, const std::string& inside) {
  return element("div", style, inside) + "\n";
}

std::string page(const std::string& title, const std::string& inside) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
         "charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kHtmlStyle +
         "</style>\n</head>\n<body>\n<main>\n" + inside +
         "</main>\n</body>\n</html>\n";
}

std::string section(const std::string& title, const std::string& inside) {
  return inside.empty()
             ? ""
             : "<section><h2>" + title + "</h2>\n" + inside + "</section>\n";
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f%%",
                100 * std::clamp(share, 0.0, 1.0));
  return text;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"wide\"><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += r == 0 ? "<thead><tr>" : "<tr>";
    for (const std::string& cell : rows[r])
      text += element(r == 0 ? "th" : "td", "", cell);
    text += r == 0 ? "</tr></thead>\n<tbody>" : "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string number_cell(const Json& of,
                        std::initializer_list<std::string_view> keys) {
  auto number = number_in(of, keys);
  return shown_data(number, shown_number(number));
}

std::string share_cell(const Json& of,
                       std::initializer_list<std::string_view> keys) {
  auto share = number_in(of, keys);
  return shown_data(share, shown_share(share));
}

std::string figure(const std::string& number, const std::string& name) {
  return div("figure", element("b", "", number) + element("span", "", name));
}

std::string spoken(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

}  // namespace penstock
