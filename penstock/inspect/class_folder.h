#pragma once

#include <cstdint>
#include <string>

#include "penstock/inspect/job_text.h"

namespace penstock {

// Parts of the jobs of files of one class each.

/// What is known of such files without reading them.
struct ClassFolder {
  std::int64_t rows = 0, classes = 0;
};
/// `things`: what they are called, "pictures". Throws Error(request), code
/// init.target, where there are not two classes, or another target is named.
ClassFolder class_folder(const NewJob& job, const char* things);

/// The field of the target, and the end of "fields".
std::string class_field(const ClassFolder& folder);
/// "split" and "loader".
std::string class_batches(const ClassFolder& folder, const char* things);

/// The job of pictures, none of which is read.
std::string image_job_text(const NewJob& job);

}  // namespace penstock
