#include "penstock/sources/plugin.h"

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

}  // namespace

const SourcePlugin& source_plugin(
    const std::string& kind,
    const std::vector<std::filesystem::path>& folders) {
  const SourceKind* known = source_kind(kind);
  const std::string& name =
      known == nullptr || known->plugin.empty() ? kind : known->plugin;
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

}  // namespace penstock
