#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/sources/source.h"
#include "penstock/sources/source_options.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/table_writer.h"

namespace penstock {

/// What a plugin gives to the program: the API of this room for one kind of
/// source. The plugin `libpenstock_source_KIND.so` is linked to the database's
/// own library, so that the program starts where that library is missing.
struct SourcePlugin {
  std::unique_ptr<Source> (*open_source)(
      const SourceSpec& spec, const std::vector<ColumnRequest>& requests,
      SourceOptions options);
  Schema (*read_schema)(const SourceSpec& spec);
  std::unique_ptr<TableWriter> (*create_table)(
      const SourceSpec& spec, const std::vector<NewColumn>& columns,
      bool replace);
};

/// The one symbol that is looked up in a plugin.
inline constexpr const char* kSourcePluginEntry = "penstock_source_part";

/// Who reads the kinds of a plugin, where that is to be decided: called with
/// null before the plugin is loaded, which is the time to load libraries that
/// it is linked to and that lie elsewhere; and with what it says when it cannot
/// be. Gives an API in its place, or null: the plugin, or that error. May
/// throw.
using PluginChoice = std::function<const SourcePlugin*(const Error* why)>;

/// From now on `choice` is asked for each use of the plugin `name`, on any
/// thread. Thread-safe.
void choose_plugin(const std::string& name, PluginChoice choice);

/// The plugin for `kind` from the first of these folders that has it, or what
/// was chosen in its place. It stays loaded. Throws Error(source) that says
/// which package to install.
const SourcePlugin& source_plugin(
    const std::string& kind, const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
