#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/source.h"
#include "penstock/sources/source_options.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/table_writer.h"

namespace penstock {

/// What a plugin gives to the program: the API of this room for one kind of
/// source. The plugin `libpenstock_source_KIND.so` is linked to the database's
/// own library, so that the program starts where that library is missing.
///
/// Program and plugin are built together; any other `version` is refused.
struct SourcePlugin {
  static constexpr std::int64_t kVersion = 8;

  std::int64_t version;
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

/// The plugin for `kind` from the first of these folders that has it. It stays
/// loaded. Throws Error(source) that says which package to install.
const SourcePlugin& source_plugin(
    const std::string& kind, const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
