#pragma once

#include <string>

namespace penstock {

/// The text of a file that the user names and that is no source of data: a job,
/// a pipeline, a summary. Throws Error(request) that begins with `what`,
/// "cannot read the job file".
std::string read_user_file(const std::string& path, std::string what);

}  // namespace penstock
