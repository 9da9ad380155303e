#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

/// A plugin that is requested: a shared library of our own that is linked to an
/// outside library, so that the program starts where that one is missing. Its
/// one function returns its API, a struct.
struct PluginRequest {
  std::string library;  ///< "libpenstock_trainer.so"
  std::string entry;    ///< the function: "penstock_trainer_part"
  std::string shown;    ///< for messages: "the plugin that trains models"
  ErrorKind kind = ErrorKind::request;  ///< of the errors,
  std::string code;     ///< which are CODE.part_missing and CODE.part_version
  std::string install;  ///< what to do when it is missing
};

/// Where plugins are looked for: the folder that PENSTOCK_PARTS names, then the
/// folder of libpenstock_core.so.
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
/// when none has it, when the one found is of another build (it is not opened
/// then), or when it cannot be loaded.
LoadedPlugin load_library(const PluginRequest& wanted,
                          const std::vector<std::filesystem::path>& folders);

/// Throws the Error for a library that has no such function, or returns
/// nothing.
[[noreturn]] void refuse_plugin(const PluginRequest& wanted,
                                const LoadedPlugin& part);

/// The API of a plugin.
template <class Face>
const Face& load_plugin(const PluginRequest& wanted,
                        const std::vector<std::filesystem::path>& folders) {
  LoadedPlugin part = load_library(wanted, folders);
  auto entry = reinterpret_cast<const Face* (*)()>(part.entry);
  const Face* face = entry == nullptr ? nullptr : entry();
  if (face == nullptr) refuse_plugin(wanted, part);
  return *face;
}

}  // namespace penstock
