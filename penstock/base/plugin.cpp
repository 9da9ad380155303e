#include "penstock/base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include "penstock/base/log.h"

namespace penstock {
namespace {

/// Never closed: opening it again gives the same library.
void* opened(const std::filesystem::path& file) {
  return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

LoadedPlugin loaded(void* library, const std::filesystem::path& file,
                    const PluginRequest& wanted) {
  // A plugin has its own copy of base, and with it of the log: it shall write
  // to ours.
  if (void* log_to = ::dlsym(library, kPluginLogEntry))
    reinterpret_cast<PluginLogEntry>(log_to)(log);
  return {file, ::dlsym(library, wanted.entry.c_str())};
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
    folders.push_back(ours / "lib" / "penstock");
  std::error_code unknown;
  auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) {
    std::filesystem::path up = program.parent_path().parent_path();
    folders.push_back(up / "lib" / "penstock");
    folders.push_back(up / "lib");
  }
  if (*PENSTOCK_PART_FOLDER != '\0') folders.emplace_back(PENSTOCK_PART_FOLDER);
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
    std::filesystem::path file = folder / wanted.library;
    if (void* library = opened(file)) return loaded(library, file, wanted);
    std::string why = ::dlerror();
    std::error_code unknown;
    if (std::filesystem::exists(file, unknown))
      throw missing(file.string(), std::move(why));
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  // On the program's own run path and in the system's library folders.
  if (void* library = opened(wanted.library))
    return loaded(library, wanted.library, wanted);
  throw missing(wanted.library, "it was not found in " + searched);
}

void refuse_plugin(const PluginRequest& wanted, const LoadedPlugin& part,
                   const std::int64_t* version, std::int64_t needed) {
  throw Error(
      wanted.kind,
      {.code = wanted.code + ".part_version",
       .what = "cannot use " + wanted.shown,
       .where = part.file.string(),
       .why = version == nullptr
                  ? "it is not a plugin of Penstock"
                  : "it has version " + std::to_string(*version) +
                        ", this program needs " + std::to_string(needed),
       .next = "install the program and its plugins from the same build"});
}

}  // namespace penstock
