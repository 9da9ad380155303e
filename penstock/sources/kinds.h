#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/sources/spec.h"

namespace penstock {

struct SourcePlugin;
namespace files {
class ObjectStore;
}  // namespace files

/// Chooses one of several plugins of a kind, or what reads in their place.
struct ChoiceOfPlugin {
  using Folders = std::vector<std::filesystem::path>;
  const SourcePlugin& (*plugin)(const Folders&) = nullptr;
  /// Which way that is, for people.
  std::string (*shown)(const Folders&) = nullptr;
  /// Reaches an object store with the libraries of this kind.
  std::shared_ptr<const files::ObjectStore> (*store)(const std::string& uri) =
      nullptr;
};

/// What the program knows of a kind of source without its plugin: its
/// descriptor, in the kind's own folder. The plugin that reads it is
/// libpenstock_source_NAME.so.
struct SourceKind {
  std::string name;   ///< the value of `kind`: "sqlite"
  std::string shown;  ///< "SQLite"
  /// How a URI of this kind begins, the one to show first: {"sqlite:"}.
  std::vector<std::string> prefixes;
  std::string example;  ///< a URI, for hints: "sqlite:PATH#table"
  /// It is a server, found at `uri`, which may hold a password. Else it is a
  /// file or folder, found at `path`.
  bool server = false;
  /// Its rows are in files and have no keys but their positions: of the
  /// settings of tables it has `where` alone.
  bool files = false;
  /// The types of its columns are those that their values look like.
  bool guesses_types = false;
  bool windows = false;  ///< it numbers windows of a column (ColumnRequest)
  /// How names of its files end, in lower case: {".parquet"}.
  std::vector<std::string> extensions = {};
  /// Files that belong to one of them and lie beside it: ".idx" in place of its
  /// ending, "+.index" after it.
  std::vector<std::string> beside = {};
  /// The plugin, where several kinds share one: libpenstock_source_PLUGIN.so.
  std::string plugin = {};
  ChoiceOfPlugin choice = {};  ///< empty: there is one plugin
  std::string to_run = {};    ///< packages of its libraries, as Debian has them
  std::string to_build = {};  ///< and those that a build needs
  /// What to do where they are not from Debian.
  std::string install = {};
  /// The settings of this kind, in addition to those of all: at least `path` or
  /// `uri`. Settings that no other kind can use are put into SourceSpec::own.
  SettingsTable<SourceSpec> settings;

  std::string place_key() const { return server ? "uri" : "path"; }
};

/// All kinds, in the order in which hints name them.
const std::vector<SourceKind>& source_kinds();
/// Null where there is no such kind.
const SourceKind* source_kind(const std::string& name);
/// The kind of the files whose names end like this one, in any case; null:
/// none.
const SourceKind* kind_of_file(const std::string& name);
/// The kind that a URI or a connection string belongs to, by its beginning;
/// null if none exists.
const SourceKind* kind_of_uri(const std::string& uri);
/// A URI of each kind, for hints: "sqlite:PATH#table or postgresql://...".
std::string source_examples();
/// Throws Error(source) that says what to install where the plugin of this kind
/// cannot be loaded.
void load_source_plugin(const std::string& name);
/// How sources of this kind are read, for people: "ready" where a plugin was
/// built for it, or which release of Arrow or pyarrow reads. Throws as
/// load_source_plugin().
std::string source_way(const std::string& name);

}  // namespace penstock
