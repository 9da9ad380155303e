#include "penstock/sources/plugin.h"

#include <map>
#include <mutex>
#include <utility>

#include "penstock/base/plugin.h"
#include "penstock/sources/kinds.h"

namespace penstock {
namespace {

std::string install_hint(const std::string& kind) {
  const SourceKind* known = source_kind(kind);
  if (known == nullptr) return "install the plugin next to the program";
  if (!known->install.empty()) return known->install;
  return "install " + known->to_run + " (Debian, Ubuntu: apt-get install " +
         known->to_run + "); a build from source needs " + known->to_build +
         "; the Python wheel contains both: reinstall it";
}

/// Plugins that are linked into the program, by the names of their libraries.
struct LinkedPlugins {
  std::mutex mutex;
  std::map<std::string, const SourcePlugin*> by_name;
};

LinkedPlugins& linked_plugins() {
  static LinkedPlugins all;
  return all;
}

const SourcePlugin* linked_plugin(const std::string& name) {
  const std::scoped_lock lock(linked_plugins().mutex);
  const auto found = linked_plugins().by_name.find(name);
  return found == linked_plugins().by_name.end() ? nullptr : found->second;
}

}  // namespace

void use_plugin(const std::string& name, const SourcePlugin& plugin) {
  const std::scoped_lock lock(linked_plugins().mutex);
  linked_plugins().by_name[name] = &plugin;
}

// A plugin is opened once for each process and stays open: its code is in
// vtables of sources that may outlive any owner.
const SourcePlugin& source_plugin(
    const std::string& kind,
    const std::vector<std::filesystem::path>& folders) {
  const SourceKind* known = source_kind(kind);
  const std::string& name =
      known == nullptr || known->plugin.empty() ? kind : known->plugin;
  if (const SourcePlugin* linked = linked_plugin(name)) return *linked;
  if (known != nullptr && known->choice.plugin != nullptr)
    return known->choice.plugin(folders);
  return load_plugin<SourcePlugin>(
      {.library = "libpenstock_source_" + name + ".so",
       .entry = kSourcePluginEntry,
       .shown = "the plugin for " + kind + " sources",
       .kind = ErrorKind::source,
       .code = "source",
       .install = install_hint(kind)},
      folders);
}

void load_source_plugin(const std::string& name) {
  source_plugin(name, plugin_folders());
}

std::string source_way(const std::string& name) {
  load_source_plugin(name);
  const SourceKind* kind = source_kind(name);
  if (kind == nullptr || kind->choice.shown == nullptr) return "ready";
  return kind->choice.shown(plugin_folders());
}

}  // namespace penstock
