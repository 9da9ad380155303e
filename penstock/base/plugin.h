#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

/// A plugin that is requested: a shared library of our own that is linked to an
/// outside library, so that the program starts where that one is missing. Its
/// one function returns its API, a struct with a `version`.
struct PluginRequest {
  std::string library;  ///< "libpenstock_trainer.so"
  std::string entry;    ///< the function: "penstock_trainer_part"
  std::string shown;    ///< for messages: "the plugin that trains models"
  ErrorKind kind = ErrorKind::request;  ///< of the errors,
  std::string code;     ///< which are CODE.part_missing and CODE.part_version
  std::string install;  ///< what to do when it is missing
};

/// Where plugins are looked for: the folder that PENSTOCK_PARTS names,
/// lib/penstock next to the library that we are in (a module of Python, say),
/// ../lib/penstock and ../lib next to the program's own folder, the folder of
/// the installation. Last come the program's run path and the system's folders.
std::vector<std::filesystem::path> plugin_folders();

/// The folder of the shared library that this code or data is in; empty when
/// that is the program itself.
std::filesystem::path folder_of_library(const void* inside);

/// A library that was found and loaded. It stays loaded: objects of a plugin
/// may live as long as the program.
struct LoadedPlugin {
  std::filesystem::path file;
  void* entry = nullptr;  ///< null: it has no such function
};

/// The library from the first of these folders that has it. Throws an Error
/// when none has it, or when the one found cannot be loaded.
LoadedPlugin load_library(const PluginRequest& wanted,
                          const std::vector<std::filesystem::path>& folders);

/// Throws the Error for a plugin without a version, or with another one.
[[noreturn]] void refuse_plugin(const PluginRequest& wanted,
                                const LoadedPlugin& part,
                                const std::int64_t* version,
                                std::int64_t needed);

/// The API of a plugin that is of the program's own version. Program and plugin
/// are built together; any other version is refused.
template <class Face>
const Face& load_plugin(const PluginRequest& wanted,
                        const std::vector<std::filesystem::path>& folders) {
  LoadedPlugin part = load_library(wanted, folders);
  auto entry = reinterpret_cast<const Face* (*)()>(part.entry);
  const Face* face = entry == nullptr ? nullptr : entry();
  if (face == nullptr || face->version != Face::kVersion)
    refuse_plugin(wanted, part, face == nullptr ? nullptr : &face->version,
                  Face::kVersion);
  return *face;
}

}  // namespace penstock
