#include "penstock/sources/source_uri.h"

#include <algorithm>
#include <filesystem>

#include "penstock/base/connection_string.h"
#include "penstock/base/error.h"
#include "penstock/base/secret.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/files/object_store.h"
#include "penstock/sources/not_read.h"
#include "penstock/sources/unnamed_source.h"
#include "penstock/sources/uri_settings.h"

namespace penstock {
namespace {

/// How a URI of this kind begins; empty where it is not of this kind.
std::string prefix_of(const SourceKind& kind, const std::string& uri) {
  for (const std::string& prefix : kind.prefixes)
    if (uri.starts_with(prefix)) return prefix;
  return "";
}

[[noreturn]] void refuse_part(const std::string& uri, const std::string& path,
                              std::string why) {
  refuse_uri(uri, path, std::move(why), "write " + source_examples());
}

}  // namespace

bool is_saved_dataset(const std::string& folder) {
  auto holds = [&](const char* name) {
    std::error_code unknown;
    return std::filesystem::exists(std::filesystem::path(folder) / name,
                                   unknown);
  };
  return holds("dataset_dict.json") ||
         (holds("state.json") && !holds("run.json"));
}

namespace {

/// A '#' may be in the name of a file, which has no tables.
SourceSpec of_files(const SourceKind& kind, std::string file,
                    const std::string& uri, const std::string& path) {
  if (file.empty()) refuse_part(uri, path, "the text names no file");
  if (files::is_stored(file)) files::check_stored(file);
  if (may_hold_password(file))
    refuse_part(
        uri, path,
        "the text looks like a connection string, and no such file exists");
  SourceSpec spec = kind.settings.defaults();
  spec.path = std::move(file);
  return spec;
}

/// Of a source whose URI has settings behind its place.
SourceSpec with_settings(const SourceKind& kind, const std::string& place,
                         const UriParts& parts, const std::string& uri,
                         const std::string& path) {
  Json section;
  section["kind"] = kind.name;
  section[kind.place_key()] = place;
  if (parts.has_table) section["table"] = parts.table;
  for (const auto& [key, text] : parts.settings) {
    if (section.find(key) != nullptr)
      refuse_part(uri, path, "'" + key + "' appears twice");
    if (text.empty())
      refuse_part(uri, path,
                  key == "query" ? "no query follows 'query='"
                                 : "nothing follows '" + key + "='");
    section[key] = uri_value(kind, key, text);
  }
  return parse_source_spec(section, path);
}

/// The only kind of the files in a folder without a prefix. Texts beside
/// others, as a README is, do not count.
const SourceKind& kind_of_folder(const std::string& folder,
                                 const std::string& path) {
  std::error_code unknown;
  if (is_saved_dataset(folder) ||
      std::filesystem::exists(
          std::filesystem::path(folder) / "dataset_info.json", unknown))
    return *source_kind("hf");
  std::vector<const SourceKind*> kinds;
  files::each_file_below(
      folder, false, [&](const std::string& file, const std::string&) {
        const SourceKind* kind = kind_of_file(file);
        if (kind != nullptr && std::ranges::count(kinds, kind) == 0)
          kinds.push_back(kind);
      });
  if (kinds.size() > 1) std::erase(kinds, source_kind("text"));
  if (kinds.size() == 1) return *kinds[0];
  std::string choices;
  for (const SourceKind* kind : kinds)
    choices += (choices.empty() ? "" : " or ") + kind->name + ":" + folder;
  refuse_folder(folder, choices, path);
}

bool is_directory_at(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown);
}

/// Of a file or folder in which nothing follows but settings.
SourceSpec of_file_uri(const SourceKind& kind, const UriParts& parts,
                       const std::string& place, const std::string& uri,
                       const std::string& path) {
  SourceSpec plain = of_files(kind, place, uri, path);
  return parts.settings.empty() ? plain
                                : with_settings(kind, place, parts, uri, path);
}

}  // namespace

// In this order: a prefix names the kind ("csv:"); the name of a file shows it;
// a folder is of the only kind of its files; a server's scheme. Whatever may
// hold a password is not repeated in a message.
SourceSpec spec_of_uri(const std::string& uri, const std::string& path) {
  const SourceKind* kind = kind_of_uri(uri);
  if (kind == nullptr) refuse_not_read(uri, path);
  if (kind != nullptr && kind->files) {
    const UriParts parts = parts_of_uri(uri, kind);
    return of_file_uri(*kind, parts,
                       parts.place.substr(prefix_of(*kind, uri).size()), uri,
                       path);
  }
  if (kind == nullptr &&
      (uri.find("://") == uri.npos || files::is_stored(uri))) {
    const bool stored = files::is_stored(uri);
    const std::string file = place_without_settings(uri);
    std::error_code unknown;
    if (!stored && !std::filesystem::exists(file, unknown))
      refuse_near_kind(uri, path);
    kind = kind_of_file(stored ? files::path_of_stored(uri) : file);
    if (kind == nullptr && !stored && is_directory_at(file))
      kind = &kind_of_folder(file, path);
    if (kind != nullptr) {
      const UriParts parts = parts_of_uri(uri, kind);
      return of_file_uri(*kind, parts, parts.place, uri, path);
    }
    if (stored) files::check_stored(uri);
  }
  const UriParts parts = parts_of_uri(uri, kind);
  if (parts.has_table && parts.table.empty())
    refuse_part(uri, path, "no table follows the '#'");
  if (kind == nullptr) refuse_unnamed(uri, path);
  // Then the table is a piece of a password, and is not shown.
  if (kind->server && parts.table.find('@') != std::string::npos)
    refuse_part(kind->prefixes[0], path,
                "an '@' follows the '#'; in a password, write '#' as %23");
  const std::string place =
      kind->server ? parts.place
                   : parts.place.substr(prefix_of(*kind, uri).size());
  if (place.empty()) refuse_part(uri, path, "the text names no file");
  if (!parts.settings.empty())
    return with_settings(*kind, place, parts, uri, path);
  SourceSpec spec = kind->settings.defaults();
  spec.table = parts.table;
  (kind->server ? spec.uri : spec.path) = place;
  return spec;
}

std::string without_secrets_of_uri(const std::string& uri) {
  const SourceKind* kind = kind_of_uri(uri);
  if (kind == nullptr || !kind->server) return uri;
  const UriParts parts = parts_of_uri(uri, kind);
  return stored_connection(parts.place) + parts.written;
}

}  // namespace penstock
