#include "penstock/base/user_file.h"

#include <filesystem>
#include <system_error>

#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/folder.h"

namespace penstock {

std::string read_user_file(const std::string& path, std::string what) try {
  return real_files().read(path);
} catch (const Error& error) {
  ErrorParts parts = error.parts();
  parts.what = std::move(what);
  std::error_code unknown;
  if (parts.code != "file.current_folder" &&
      !std::filesystem::exists(path, unknown) && !unknown)
    parts.next = advice_for_missing(path);
  throw Error(ErrorKind::request, std::move(parts));
}

}  // namespace penstock
