#pragma once

#include <filesystem>

namespace penstock::arrow_files {

/// The release of pyarrow whose libraries the plugin is linked to, and how the
/// names of these end: every 26.0 has the same.
inline constexpr const char* kPyarrow = "26.0.1";
inline constexpr const char* kLibraries = "2600";

/// Whose libraries: of the plugin for Parquet and Arrow files, or of that for
/// object stores.
enum class Libraries { of_files, of_stores };

/// Loads the libraries of that release out of `pyarrow`, the folder of the
/// package, so that a plugin finds them: a library that is loaded is looked
/// for by its name alone. False where the folder does not hold them all; they
/// stay loaded. Thread-safe.
bool load_libraries(const std::filesystem::path& pyarrow, Libraries libraries);

/// The same out of the folder that the environment variable PENSTOCK_ARROW_DIR
/// names: one that holds pyarrow/.
void load_named_libraries(Libraries libraries);

}  // namespace penstock::arrow_files
