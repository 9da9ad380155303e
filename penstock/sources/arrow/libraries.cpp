#include "penstock/sources/arrow/libraries.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string>

namespace penstock::arrow_files {
namespace {

using Names = std::array<const char*, 2>;

/// In the order in which they need each other.
const Names& names_of(Libraries libraries) {
  static constexpr Names kOfFiles = {"libarrow.so.", "libparquet.so."};
  static constexpr Names kOfStores = {"libarrow.so.", "libarrow_s3.so."};
  return libraries == Libraries::of_files ? kOfFiles : kOfStores;
}

}  // namespace

bool load_libraries(const std::filesystem::path& pyarrow, Libraries libraries) {
  const Names& names = names_of(libraries);
  std::error_code unknown;
  for (const char* name : names)
    if (!std::filesystem::exists(pyarrow / (std::string(name) + kLibraries),
                                 unknown))
      return false;
  for (const char* name : names)
    if (::dlopen((pyarrow / (std::string(name) + kLibraries)).c_str(),
                 RTLD_LAZY | RTLD_LOCAL) == nullptr)
      return false;
  return true;
}

void load_named_libraries(Libraries libraries) {
  if (const char* named = std::getenv("PENSTOCK_ARROW_DIR"))
    if (*named != '\0')
      load_libraries(std::filesystem::path(named) / "pyarrow", libraries);
}

}  // namespace penstock::arrow_files
