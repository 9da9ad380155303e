#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/kinds.h"

namespace penstock {

/// The settings of a source that is made of files (SourceSpec::own). Each kind
/// has those that mean something to it.
struct FileSettings {
  /// Where `path` is a list. One path stands in SourceSpec::path.
  std::vector<std::string> paths;
  /// Where all paths name a copy (SourceSpec::staged_in): its folders, and
  /// those that they were copied from. Names in files mean what is beside
  /// these.
  std::vector<std::pair<std::string, std::string>> copied_from;
  /// Types that are not what the files say or look like, by column.
  std::vector<std::pair<std::string, std::string>> columns;
  bool union_schema = false;  ///< a column that a file lacks is NULL there

  // Of text in rows and cells. Empty: found in the first file.
  std::string delimiter;
  std::string quote = "\"";
  std::string decimal = ".";
  std::string thousands;  ///< between groups of three digits; empty: nothing
  std::string encoding = "utf-8";
  bool header = true;
  std::vector<std::string> na = default_na();

  // Of token stores that do not say it themselves.
  std::string dtype;               ///< "uint16", "uint32"; empty: not known
  std::int64_t document_end = -1;  ///< the token that ends a document; -1: none
  bool by_line = false;  ///< of text: its lines are documents, not its files

  // Of HDF5.
  std::string group;             ///< empty: "/"
  std::string samples = "rows";  ///< or "groups", "data_sets"
  std::string axis = "auto";     ///< that counts rows: "first", "last"
  std::string row_labels;        ///< a file with rows beside these
  double decoded_gib = -1;       ///< for decoded chunks; -1: as is free
  /// Data sets of values, and those of offsets that cut them into rows.
  std::vector<std::pair<std::string, std::string>> ragged;
  /// Of .npy files that are columns: the column and the file below `path`.
  std::vector<std::pair<std::string, std::string>> arrays;

  std::string part;  ///< of a data set that has several: "train"

  static std::vector<std::string> default_na();
};

const FileSettings& file_settings_of(const SourceSpec& spec);

/// The files, folders and patterns that `path` names.
std::vector<std::string> paths_of(const SourceSpec& spec);

/// The types that `columns` may name.
const std::vector<std::string>& column_type_names();

/// Settings of every kind of source that is made of files, to which the kind
/// adds its own: `path` and `columns`.
SettingsTable<SourceSpec> path_settings(const std::string& kind,
                                        const SettingsTable<FileSettings>& own);

/// A kind that the plugin `plugin` reads.
SourceKind file_kind(const std::string& name, const std::string& shown,
                     const std::string& plugin,
                     std::vector<std::string> extensions,
                     const SettingsTable<FileSettings>& own);

/// `union`, for kinds whose files say their types.
SettingsTable<FileSettings>& add_union(SettingsTable<FileSettings>& table);

}  // namespace penstock
