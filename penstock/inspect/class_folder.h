#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/inspect/job_text.h"

namespace penstock {

// Parts of the jobs of files of one class each.

/// What is known of such files.
struct ClassFolder {
  std::int64_t rows = 0, classes = 0;
  std::string column = {};       ///< of their bytes; empty: that of the source
  std::string target = "class";  ///< the column of the classes
  /// Every row has one of these classes.
  bool all_known = true;
};
/// Of folders and archives, without reading the files. `things`: what they are
/// called, "pictures". Throws Error(request), code init.target, where there are
/// not two classes, or another target is named.
ClassFolder class_folder(const NewJob& job, const char* things);

/// Of a table in which a column holds files: the one that --input names, or the
/// first. The target is read. Throws Error(request), code init.target, where
/// the target is not one of classes.
struct ClassTable {
  std::string kind;  ///< of the field that decodes them: "image", or "audio"
  ClassFolder files;
};
/// nullopt: no column holds files that can be decoded.
std::optional<ClassTable> class_table(const NewJob& job, StopFlag stop);

/// The field of the target, and the end of "fields".
std::string class_field(const ClassFolder& folder);
/// "split" and "loader".
std::string class_batches(const ClassFolder& folder, const char* things);

/// The beginning of the job, with its source. `one`: what a file is, "picture".
std::string class_source(const NewJob& job, const ClassFolder& folder,
                         const std::string& one);
/// `"column": "bytes",` on a line of its own; empty for that of the source.
std::string file_column(const ClassFolder& folder);

/// The job of pictures.
std::string image_job_text(const NewJob& job, const ClassFolder& folder);
/// The job of sounds, of which the first are decoded: how long they are decides
/// how long rows are.
std::string sound_job_text(const NewJob& job, const ClassFolder& folder,
                           StopFlag stop);

}  // namespace penstock
