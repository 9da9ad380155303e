#include "penstock/base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include "penstock/base/plugin_build.h"

namespace penstock {
namespace {

Error other_build(const PluginRequest& wanted,
                  const std::filesystem::path& file, const std::string& build) {
  return Error(
      wanted.kind,
      {.code = wanted.code + ".part_version",
       .what = "cannot use " + wanted.shown,
       .where = file.string(),
       .why = build.empty() ? "the file is not a Penstock plugin"
                            : "the plugin belongs to Penstock " + build +
                                  ", but libpenstock_core.so is version " +
                                  std::string(own_build()),
       .next = "install the program and its plugins from the same build"});
}

}  // namespace

std::filesystem::path folder_of_library(const void* inside) {
  Dl_info about{};
  if (::dladdr(inside, &about) == 0 || about.dli_fname == nullptr) return {};
  std::error_code unknown;
  const std::filesystem::path file = about.dli_fname;
  // For the program itself this is argv[0], which may be a bare "penstock".
  if (!file.is_absolute() ||
      std::filesystem::equivalent(file, "/proc/self/exe", unknown) || unknown)
    return {};
  return file.parent_path();
}

std::vector<std::filesystem::path> plugin_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv("PENSTOCK_PARTS"))
    if (*named != '\0') folders.emplace_back(named);
  static const char here = 0;
  if (auto ours = folder_of_library(&here); !ours.empty())
    folders.push_back(std::move(ours));
  return folders;
}

LoadedPlugin load_library(const PluginRequest& wanted,
                          const std::vector<std::filesystem::path>& folders) {
  auto missing = [&](std::string where, std::string why) {
    return Error(wanted.kind, {.code = wanted.code + ".part_missing",
                               .what = "cannot load " + wanted.shown,
                               .where = std::move(where),
                               .why = std::move(why),
                               .next = wanted.install});
  };
  std::string searched;
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path file = folder / wanted.library;
    const std::optional<std::string> build = build_of_library(file);
    if (build && *build != own_build()) throw other_build(wanted, file, *build);
    // Never closed: opening it again gives the same library.
    if (void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
      return {file, ::dlsym(library, wanted.entry.c_str())};
    std::string why = ::dlerror();
    std::error_code unknown;
    if (std::filesystem::exists(file, unknown))
      throw missing(file.string(), std::move(why));
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  throw missing(wanted.library, "the file was not found in " + searched);
}

void refuse_plugin(const PluginRequest& wanted, const LoadedPlugin& part) {
  throw other_build(wanted, part.file, "");
}

}  // namespace penstock
