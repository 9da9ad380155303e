#pragma once

#include <any>
#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// The `source` section of a job, checked.
struct SourceSpec {
  /// The name of a SourceKind: "sqlite"; or "concatenated" or "joined".
  std::string kind;
  std::string path;  ///< the file or folder, where the kind is one
  std::string uri;   ///< the connection string, where the kind is a server
  std::string table;
  std::string query;  ///< a SELECT in place of a table; may be empty
  /// The columns that name a row, in this order. None: the primary key, or what
  /// the database itself numbers rows by.
  std::vector<std::string> key;
  std::string where;      ///< SQL condition, pushed down; may be empty
  bool skip_bad = false;  ///< on_bad: "skip" instead of "stop"
  /// The fingerprint that the rows must have, or its beginning; empty: any.
  std::string fingerprint;
  /// What the user calls the version of the rows, where the source knows none;
  /// may be empty.
  std::string version;
  /// on_missing: "store" instead of "stop": where the source cannot be opened,
  /// the rows that an earlier run has stored are used.
  bool stored_if_missing = false;
  /// Where its files are copied before they are read: "ram", "disk" or a
  /// folder; empty: nowhere.
  std::string stage;
  /// The folder of that copy, once it is there. No setting.
  std::string staged_in = {};
  /// Which versions of which files `stage` found; empty: it has not looked. No
  /// setting.
  std::string staged_version = {};
  double round_trip_ms = 0;  ///< simulated latency per statement
  /// At most this many for a scan. 0: as many as there are threads to parse.
  int connections = 0;
  /// The sources that a concatenated or joined one is made of.
  std::vector<SourceSpec> sources = {};
  /// Settings of which only this kind knows the type (see SourceKind).
  std::any own;
};

/// A source that is made of others: all rows of several, or the rows of two
/// with the same key side by side.
inline constexpr const char* kConcatenated = "concatenated";
inline constexpr const char* kJoined = "joined";

/// Checks a `source` section; a text is taken as a URI ("sqlite:PATH" or
/// "postgresql://..."), whose table may follow as "#table", or a query as
/// "?query=SELECT ...", "?key=a,b&query=SELECT ...".
SourceSpec parse_source_spec(const Json& section, const std::string& path);
/// The same for a source that the caller opens itself: `on_bad` and
/// `fingerprint` alone.
SourceSpec parse_own_source_spec(const Json& section, const std::string& path);
/// The settings of that section with every default, but for empty ones.
Json source_section(const SourceSpec& spec);
/// The most readers for a scan: `connections`, or the fewest of the sources
/// that it is made of. 0: as many as there are threads to parse.
int connections_of(const SourceSpec& spec);

/// A `source` section as it may be stored and shown: without passwords, also in
/// those that it is made of. What is no section stays unchanged.
Json without_secrets_of_source(Json section);
/// Those settings of a section whose value shows in the identity of its rows
/// (Identity::value), where they are not the default. Without secrets.
Json settings_in_identity(const SourceSpec& spec);
/// The JSON Schema of that section.
Json source_schema();

}  // namespace penstock
