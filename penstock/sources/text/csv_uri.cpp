#include "penstock/sources/text/csv_uri.h"

#include <vector>

#include "penstock/base/formatted.h"
#include "penstock/base/json.h"

namespace penstock::text {
namespace {

/// Unchanged where the address and a shell's quotation marks allow it.
std::string in_uri(const std::string& value) {
  std::string all;
  for (const char one : value)
    if (static_cast<unsigned char>(one) <= ' ' ||
        std::string_view("&%#'\x7f").find(one) != std::string_view::npos)
      all += formatted("%%%02X", static_cast<unsigned char>(one));
    else
      all += one;
  return all;
}

std::string of_columns(
    const std::vector<std::pair<std::string, std::string>>& types) {
  std::string all;  // without spaces, which an address has to escape
  for (const auto& [name, type] : types)
    all +=
        (all.empty() ? "" : ",") + Json(name).dump() + ":" + Json(type).dump();
  return "columns={" + in_uri(all) + "}";
}

std::string of_no_values(const std::vector<std::string>& texts) {
  std::string all = "na=";
  for (std::size_t at = 0; at < texts.size(); ++at)
    all += (at == 0 ? "" : ",") + in_uri(texts[at]);
  return all;
}

}  // namespace

std::string csv_uri(const SourceSpec& spec, const std::string& first,
                    const std::string& more) {
  const FileSettings& given = file_settings_of(spec);
  const FileSettings defaults;
  std::string settings;
  auto add = [&](const std::string& setting) {
    const std::string name = setting.substr(0, setting.find('=') + 1);
    if (("&" + more).find("&" + name) == std::string::npos)
      settings += setting + "&";
  };
  for (const auto& [name, member] :
       {std::pair{"delimiter=", &FileSettings::delimiter},
        std::pair{"quote=", &FileSettings::quote},
        std::pair{"decimal=", &FileSettings::decimal},
        std::pair{"thousands=", &FileSettings::thousands},
        std::pair{"encoding=", &FileSettings::encoding}})
    if (given.*member != defaults.*member) add(name + in_uri(given.*member));
  if (!given.header) add("header=false");
  if (given.na != defaults.na) add(of_no_values(given.na));
  if (!given.columns.empty()) add(of_columns(given.columns));
  if (!spec.where.empty()) add("where=" + in_uri(spec.where));
  if (spec.skip_bad) add("on_bad=skip");
  return "csv:" + (given.paths.empty() ? spec.path : first) + "?" + settings +
         more;
}

std::string with_column_type(const FileSettings& given,
                             const std::string& column,
                             const std::string& type) {
  auto types = given.columns;
  types.emplace_back(column, type);
  return of_columns(types);
}

std::string with_no_value(const FileSettings& given, const std::string& text) {
  std::vector<std::string> texts{""};
  if (given.na != FileSettings::default_na()) texts = given.na;
  texts.push_back(text);
  return of_no_values(texts);
}

}  // namespace penstock::text
