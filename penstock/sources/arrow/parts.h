#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/files/object_store.h"
#include "penstock/sources/plugin.h"

// The plugins for Parquet and Arrow files and for object stores are built once
// for each major release of Arrow, whose libraries promise no ABI beyond it:
// libpenstock_source_arrow_2600.so goes with libarrow.so.2600. The libraries
// are those of the pyarrow that is installed. Any other pyarrow reads by
// itself: see scanner.h.

namespace penstock::arrow_files {

/// Reads Parquet and Arrow files: a plugin out of these folders that finds its
/// libraries, the one that fits the installed pyarrow first; else the scanner.
/// Throws Error(source), source.part_missing, where there is neither. All
/// functions are thread-safe.
const SourcePlugin& chosen_plugin(
    const std::vector<std::filesystem::path>& folders);

/// Reaches an object store, in the same way.
std::shared_ptr<const files::ObjectStore> chosen_store(const std::string& uri);

/// Which way chosen_plugin() takes, for people: "the plugin for Arrow 26". It
/// throws what chosen_plugin() throws.
std::string chosen_way(const std::vector<std::filesystem::path>& folders);

}  // namespace penstock::arrow_files
