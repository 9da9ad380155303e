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

/// By the plugin's name. Functions are copied out under the lock and called
/// without it, since a choice may load libraries and import Python modules,
/// which may come back here.
struct Choices {
  std::mutex mutex;
  std::map<std::string, PluginChoice> by_name;
};

Choices& choices() {
  static Choices all;
  return all;
}

PluginChoice choice_of(const std::string& name) {
  const std::scoped_lock lock(choices().mutex);
  auto found = choices().by_name.find(name);
  return found == choices().by_name.end() ? PluginChoice() : found->second;
}

}  // namespace

void choose_plugin(const std::string& name, PluginChoice choice) {
  const std::scoped_lock lock(choices().mutex);
  choices().by_name[name] = std::move(choice);
}

// A choice is asked twice: before the plugin is loaded, as it may bring another
// one, and after it could not be loaded, with the reason. The plugin itself is
// opened once for each process and stays open: its code is in vtables of
// sources that may outlive any owner.
const SourcePlugin& source_plugin(
    const std::string& kind,
    const std::vector<std::filesystem::path>& folders) {
  const SourceKind* known = source_kind(kind);
  const std::string& name =
      known == nullptr || known->plugin.empty() ? kind : known->plugin;
  const PluginChoice choice = choice_of(name);
  if (choice)
    if (const SourcePlugin* other = choice(nullptr)) return *other;
  if (!choice && known != nullptr && known->choice.plugin != nullptr)
    return known->choice.plugin(folders);
  try {
    return load_plugin<SourcePlugin>(
        {.library = "libpenstock_source_" + name + ".so",
         .entry = kSourcePluginEntry,
         .shown = "the plugin for " + kind + " sources",
         .kind = ErrorKind::source,
         .code = "source",
         .install = install_hint(kind)},
        folders);
  } catch (const Error& why) {
    if (choice)
      if (const SourcePlugin* other = choice(&why)) return *other;
    throw;
  }
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
