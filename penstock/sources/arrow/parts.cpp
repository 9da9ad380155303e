#include "penstock/sources/arrow/parts.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "penstock/base/plugin.h"
#include "penstock/base/plugin_releases.h"
#include "penstock/sources/arrow/child_scanner.h"
#include "penstock/sources/arrow/scanned_file.h"
#include "penstock/sources/arrow/scanner.h"

namespace penstock {
namespace arrow_files {
namespace {

namespace fs = std::filesystem;
using Folders = std::vector<fs::path>;

/// A kind of plugin, and the library that it needs beside libarrow.so.
struct PartKind {
  std::string stem;     // of its file's name, without the release
  const char* library;  // may be a part of libarrow.so
  const char* entry;
  const char* shown;
};
const PartKind kOfFiles{"libpenstock_source_arrow_", "libparquet.so.",
                        kSourcePluginEntry,
                        "the plugin for Parquet and Arrow files"};
const PartKind kOfStores{"libpenstock_object_store_", "libarrow_s3.so.",
                         files::kObjectStoreEntry,
                         "the plugin for object stores"};

struct KeptChoice {
  std::mutex mutex;
  std::shared_ptr<ArrowChoice> choice = program_choice();
  bool of_program = true;
};

KeptChoice& kept_choice() {
  static KeptChoice only;
  return only;
}

std::shared_ptr<ArrowChoice> current_choice() {
  const std::scoped_lock lock(kept_choice().mutex);
  return kept_choice().choice;
}

/// Loads the libraries of this release out of `pyarrow`, the folder of the
/// package, so that a plugin finds them: a library that is loaded is looked for
/// by its name alone. False where the folder does not have them.
bool load_arrow(const fs::path& pyarrow, const std::string& release,
                const PartKind& kind) {
  const fs::path arrow = pyarrow / ("libarrow.so." + release);
  const fs::path other = pyarrow / (kind.library + release);
  std::error_code unknown;
  if (!fs::exists(arrow, unknown) ||
      ::dlopen(arrow.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr)
    return false;
  return !fs::exists(other, unknown) ||
         ::dlopen(other.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

struct FoundPart {
  std::string release;
  LoadedPlugin plugin;
};

/// The plugin of this kind that finds its libraries; nullopt: none does.
std::optional<FoundPart> find_part(const PartKind& kind, const Folders& folders,
                                   const fs::path& pyarrow) {
  std::vector<std::string> releases = plugin_releases(kind.stem, folders);
  if (!pyarrow.empty())
    std::stable_partition(releases.begin(), releases.end(),
                          [&](const std::string& release) {
                            return load_arrow(pyarrow, release, kind);
                          });
  for (const std::string& release : releases) {
    const PluginRequest wanted{.library = kind.stem + release + ".so",
                               .entry = kind.entry,
                               .shown = kind.shown,
                               .kind = ErrorKind::source,
                               .code = "source"};
    try {
      FoundPart found{release, load_library(wanted, folders)};
      if (found.plugin.entry == nullptr) refuse_plugin(wanted, found.plugin);
      return found;
    } catch (const Error& error) {
      if (error.parts().code != "source.part_missing") throw;
    }
  }
  return std::nullopt;
}

std::optional<FoundPart> wanted_part(ArrowChoice& choice, const PartKind& kind,
                                     const Folders& folders) {
  if (choice.scanner_first()) return std::nullopt;
  return find_part(kind, folders, choice.pyarrow());
}

template <class Api>
const Api& api_of(const FoundPart& part) {
  return *reinterpret_cast<const Api* (*)()>(part.plugin.entry)();
}

}  // namespace

const SourcePlugin& chosen_plugin(const Folders& folders) {
  const std::shared_ptr<ArrowChoice> choice = current_choice();
  if (const auto part = wanted_part(*choice, kOfFiles, folders))
    return api_of<SourcePlugin>(*part);
  return scanning_plugin(choice->scanner());
}

std::shared_ptr<const files::ObjectStore> chosen_store(const std::string& uri) {
  const std::shared_ptr<ArrowChoice> choice = current_choice();
  if (const auto part = wanted_part(*choice, kOfStores, plugin_folders()))
    return api_of<files::ObjectStorePlugin>(*part).connect(uri);
  return choice->connect(uri);
}

std::string chosen_way(const Folders& folders) {
  const std::shared_ptr<ArrowChoice> choice = current_choice();
  if (const auto part = wanted_part(*choice, kOfFiles, folders))
    return "the plugin for Arrow " +
           part->release.substr(0, part->release.size() - 2);
  choice->scanner();
  const std::scoped_lock lock(kept_choice().mutex);
  return kept_choice().of_program ? program_reads_by() : "this pyarrow";
}

}  // namespace arrow_files

void choose_arrow(std::shared_ptr<ArrowChoice> choice) {
  const std::scoped_lock lock(arrow_files::kept_choice().mutex);
  arrow_files::kept_choice().choice = std::move(choice);
  arrow_files::kept_choice().of_program = false;
}

}  // namespace penstock
