#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

/// What a loadable part hands to the program: the face of this room for one
/// kind of source. The part `libpenstock_source_KIND.so` carries the database's
/// own library, so that the program starts where that library is missing.
///
/// Program and part are built together; `version` refuses a stranger.
struct SourcePlugin {
  static constexpr std::int64_t kVersion = 5;

  std::int64_t version;
  std::unique_ptr<Source> (*open_source)(
      const SourceSpec& spec, const std::vector<ColumnRequest>& requests,
      SourceOptions options);
  Schema (*read_schema)(const SourceSpec& spec);
  std::unique_ptr<TableWriter> (*create_table)(
      const SourceSpec& spec, const std::vector<NewColumn>& columns,
      bool replace);
};

/// The one symbol that is looked up in a part.
inline constexpr const char* kSourcePartEntry = "penstock_source_part";

/// The part for `kind` out of the first of these folders that has it. It stays
/// loaded. Throws Error(source) that says which package to install.
const SourcePlugin& load_part(
    const std::string& kind, const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
