#pragma once

#include <cstdint>
#include <filesystem>
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

/// From now on `plugin`, which is linked into the program and is never
/// destroyed, takes the place of the library `name`. Thread-safe.
void use_plugin(const std::string& name, const SourcePlugin& plugin);

/// The plugin for `kind`: the one in use, or that of the first of these folders
/// that has it. It stays loaded. Throws Error(source) that says
/// which package to install.
const SourcePlugin& source_plugin(
    const std::string& kind, const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
