#include "penstock/sources/part.h"

#include <dlfcn.h>

#include <cstdlib>

#include "penstock/base/error.h"

namespace penstock {
namespace {

/// The packages that a kind's library comes in, as Debian calls them.
struct Packages {
  std::string to_run;
  std::string to_build;
};

Packages packages_of(const std::string& kind) {
  if (kind == "postgres") return {"libpq5", "libpq-dev"};
  return {"libsqlite3-0", "libsqlite3-dev"};
}

Error part_missing(const std::string& kind, std::string where,
                   std::string why) {
  Packages packages = packages_of(kind);
  return Error(ErrorKind::source,
               {.code = "source.part_missing",
                .what = "cannot load the part for " + kind + " sources",
                .where = std::move(where),
                .why = std::move(why),
                .next = "install " + packages.to_run +
                        " (Debian, Ubuntu: apt-get install " + packages.to_run +
                        "); a build from source needs " + packages.to_build});
}

const SourcePart& checked(void* library, const std::filesystem::path& file) {
  auto entry =
      reinterpret_cast<SourcePartEntry>(::dlsym(library, kSourcePartEntry));
  const SourcePart* part = entry == nullptr ? nullptr : entry();
  if (part != nullptr && part->version == SourcePart::kVersion) return *part;
  throw Error(
      ErrorKind::source,
      {.code = "source.part_version",
       .what = "cannot use a part for sources",
       .where = file.string(),
       .why = part == nullptr
                  ? "it is no part of Penstock"
                  : "it has version " + std::to_string(part->version) +
                        ", this program needs " +
                        std::to_string(SourcePart::kVersion),
       .next = "install the program and its parts from the same build"});
}

}  // namespace

std::vector<std::filesystem::path> part_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv("PENSTOCK_PARTS"))
    if (*named != '\0') folders.emplace_back(named);
  std::error_code unknown;
  auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) {
    std::filesystem::path up = program.parent_path().parent_path();
    folders.push_back(up / "lib" / "penstock");
    folders.push_back(up / "lib");
  }
  folders.emplace_back(PENSTOCK_PART_FOLDER);
  return folders;
}

const SourcePart& load_part(const std::string& kind,
                            const std::vector<std::filesystem::path>& folders) {
  std::string name = "libpenstock_source_" + kind + ".so";
  std::string searched;
  for (const std::filesystem::path& folder : folders) {
    std::filesystem::path file = folder / name;
    // Never closed: objects of the part may live as long as the program, and
    // opening it again gives the same library.
    if (void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
      return checked(library, file);
    std::string why = ::dlerror();
    std::error_code unknown;
    if (std::filesystem::exists(file, unknown))
      throw part_missing(kind, file.string(), std::move(why));
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  throw part_missing(kind, name, "it was not found in " + searched);
}

}  // namespace penstock
