#include "penstock/sources/arrow/libraries.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace penstock::arrow_files {
namespace {

/// In the order in which they need each other.
constexpr const char* kNames[] = {"libarrow.so.", "libparquet.so."};

}  // namespace

bool load_libraries(const std::filesystem::path& pyarrow) {
  std::error_code unknown;
  for (const char* name : kNames)
    if (!std::filesystem::exists(pyarrow / (std::string(name) + kLibraries),
                                 unknown))
      return false;
  for (const char* name : kNames)
    if (::dlopen((pyarrow / (std::string(name) + kLibraries)).c_str(),
                 RTLD_LAZY | RTLD_LOCAL) == nullptr)
      return false;
  return true;
}

void load_named_libraries() {
  if (const char* named = std::getenv("PENSTOCK_ARROW_DIR"))
    if (*named != '\0')
      load_libraries(std::filesystem::path(named) / "pyarrow");
}

}  // namespace penstock::arrow_files
