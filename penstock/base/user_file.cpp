#include "penstock/base/user_file.h"

#include "penstock/base/error.h"
#include "penstock/base/file.h"

namespace penstock {

std::string read_user_file(const std::string& path, std::string what) try {
  return real_files().read(path);
} catch (const Error& error) {
  ErrorParts parts = error.parts();
  parts.what = std::move(what);
  throw Error(ErrorKind::request, std::move(parts));
}

}  // namespace penstock
