#pragma once

#include <string>
#include <utility>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/sources/kinds.h"

namespace penstock {

/// A URI in its parts: "sqlite:PATH?where=a%3E1&on_bad=skip#table". Settings
/// have "%20" and the like for what they hold of "&", "#" and "%"; what follows
/// "query=" is the query, unchanged.
struct UriParts {
  /// Of a server or an object store with the options that are theirs.
  std::string place;
  std::vector<std::pair<std::string, std::string>> settings = {};
  std::string table = {};
  bool has_table = false;    ///< a '#' is there
  std::string written = {};  ///< what follows the place, "?where=...#table"
};

/// Null `kind`: it is not known. A file that is there may have any name.
UriParts parts_of_uri(const std::string& uri, const SourceKind* kind);

/// A URI up to its settings; all of it where a file of this name is there.
std::string place_without_settings(const std::string& uri);

/// What a setting of this kind says as a text, in the type that it has.
Json uri_value(const SourceKind& kind, const std::string& key,
               const std::string& text);

/// Those that a source of this kind has beside the settings of the kind.
std::vector<SettingSchema> settings_beside(const SourceKind& kind);

}  // namespace penstock
