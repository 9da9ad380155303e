#include "penstock/sources/uri_settings.h"

#include <algorithm>
#include <filesystem>

#include "penstock/base/error.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/files/object_store.h"

namespace penstock {
namespace {

constexpr std::string_view kQuery = "query=";

bool is_name(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

/// The name before the '=' with which a text begins; empty: none.
std::string name_at(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_name);
  return end == text.end() || *end != '=' ? std::string()
                                          : std::string(text.begin(), end);
}

/// Where "?name=" begins: any other '?' is of the place, as that of a pattern.
std::size_t settings_at(const std::string& uri) {
  for (std::size_t at = uri.find('?'); at != uri.npos;
       at = uri.find('?', at + 1))
    if (!name_at(std::string_view(uri).substr(at + 1)).empty()) return at;
  return uri.npos;
}

std::vector<SettingSchema> settings_of(const SourceKind& kind) {
  std::vector<SettingSchema> all = kind.settings.schemas();
  for (SettingSchema& setting : settings_beside(kind))
    all.push_back(std::move(setting));
  return all;
}

/// Of a server or a store, whose own options are not ours.
bool is_setting(const SourceKind* kind, const std::string& name) {
  return kind != nullptr &&
         std::ranges::any_of(
             settings_of(*kind),
             [&](const SettingSchema& setting) { return setting.key == name; });
}

bool is_there(const std::string& uri, const SourceKind* kind) {
  if (kind == nullptr || kind->server) return false;
  std::string path = uri;
  for (const std::string& prefix : kind->prefixes)
    if (uri.starts_with(prefix)) path = uri.substr(prefix.size());
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}

}  // namespace

std::string place_without_settings(const std::string& uri) {
  std::error_code unknown;
  if (std::filesystem::exists(uri, unknown)) return uri;
  return uri.substr(0, settings_at(uri));
}

//   PLACE ? name=value & name=value ... [& query=SQL | # table]
// A query comes last and takes all that is left, as SQL itself has '&', '?' and
// '#'. What is a setting of the kind is taken out; of a server or a store,
// other options stay with the place, which is handed to its client library.
UriParts parts_of_uri(const std::string& uri, const SourceKind* kind) {
  const bool has_tables = kind == nullptr || !kind->files;
  const std::size_t begin = is_there(uri, kind) ? uri.npos : settings_at(uri);
  std::string rest = begin == uri.npos ? "" : uri.substr(begin + 1);
  std::string query;
  bool has_query = rest.starts_with(kQuery);
  std::size_t at = has_query ? 0 : rest.find("&" + std::string(kQuery));
  if (at != rest.npos && (has_query || at > 0)) {
    has_query = true;
    query = rest.substr(rest.find('=', at) + 1);
    rest.resize(at);
  }
  UriParts parts{.place = uri.substr(0, begin)};
  std::string& last = begin == uri.npos ? parts.place : rest;
  if (const std::size_t mark = last.rfind('#');
      has_tables && !has_query && mark != last.npos) {
    parts.has_table = true;
    parts.table = last.substr(mark + 1);
    last.resize(mark);
  }
  const bool all =
      kind != nullptr && !kind->server && uri.find("://") == uri.npos;
  std::string kept;
  for (std::size_t from = 0; from < rest.size();) {
    const std::size_t end = std::min(rest.find('&', from), rest.size());
    const std::string one = rest.substr(from, end - from);
    const std::string name = name_at(one);
    if (all || (!name.empty() && is_setting(kind, name))) {
      parts.written += (parts.written.empty() ? "" : "&") + one;
      parts.settings.emplace_back(
          name.empty() ? one : name,
          name.empty() ? ""
                       : files::without_percent(one.substr(name.size() + 1)));
    } else {
      kept += (kept.empty() ? "?" : "&") + one;
    }
    from = end + 1;
  }
  parts.place += kept;
  if (has_query) {
    parts.settings.emplace_back("query", query);
    parts.written +=
        (parts.written.empty() ? "" : "&") + std::string(kQuery) + query;
  }
  if (!parts.written.empty()) parts.written.insert(0, kept.empty() ? "?" : "&");
  if (parts.has_table) parts.written += "#" + parts.table;
  return parts;
}

Json uri_value(const SourceKind& kind, const std::string& key,
               const std::string& text) {
  const std::vector<SettingSchema> settings = settings_of(kind);
  const auto found = std::ranges::find(settings, key, &SettingSchema::key);
  const Json* type =
      found == settings.end() ? nullptr : found->rule.find("type");
  const std::string wanted =
      type != nullptr && type->is_string() ? type->string() : "string";
  if (wanted == "array" || (key == "key" && text.find(',') != text.npos)) {
    Json list(Json::Array{});
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      list.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return list;
  }
  if (wanted == "string") return Json(text);
  try {
    return Json::parse(text, key);
  } catch (const Error&) {
    return Json(text);  // what reads the setting says what it expects
  }
}

}  // namespace penstock
