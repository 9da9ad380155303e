#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

/// The build that libpenstock_core.so is of: "0.1.0 (build 1f09a27c33d1)".
/// Objects go back and forth between the core and its plugins, so that both
/// must have been compiled with the same headers.
std::string_view own_build();
/// Throws Error(request), core.other_build, unless `build`, the build that the
/// caller `who` is of (PENSTOCK_BUILD_NAME), is that of the core.
void check_core(std::string_view who, std::string_view build);

/// The build that a shared library says it is of, read from its ELF note
/// without opening it; empty where it says nothing. nullopt where `file` cannot
/// be read or is no shared library of this machine: opening it tells why.
std::optional<std::string> build_of_library(const std::filesystem::path& file);

}  // namespace penstock
