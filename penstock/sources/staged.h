#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/source.h"
#include "penstock/sources/spec.h"

namespace penstock {

/// A file of a source with `source.stage`, and its place in the copy.
struct StagedFile {
  std::string from;
  std::string to;  ///< below the copy's folder, with '/'
  std::int64_t bytes = 0;
  std::int64_t changed_ns = 0;  ///< since 1970, when it was last written
  /// Its number, size and times: another version has another text.
  std::string version;
};

/// The same file in its present state. Throws Error(source), files.missing.
StagedFile staged_file(const std::string& from, std::string to);

/// All that `path` names, by `to` in UTF-8 order: of a folder whatever is below
/// it, hidden files too and through links; of a token store its index. Empty
/// folders are not among them. And a file of HDF5 that `labels` names.
///
/// Throws Error(source): files.missing, files.unreadable; Error(request),
/// source.stage: of an object store, and of an SQLite file that is being
/// written.
std::vector<StagedFile> staged_files(const SourceSpec& spec);

/// Which files they are, and which versions of them: 64 hexadecimal digits.
std::string version_of(const std::vector<StagedFile>& files);

/// A name for the copy among others: 32 hexadecimal digits, of the kind and of
/// the absolute paths.
std::string staged_name(const SourceSpec& spec);

/// The source over its copy, where SourceSpec::staged_in names it.
SourceSpec spec_of_copy(const SourceSpec& spec);

/// The source that was opened over the copy, with the name and the identity
/// that do not depend on where the copy lies, or on whether there is one.
std::unique_ptr<Source> as_original(std::unique_ptr<Source> copy,
                                    const SourceSpec& spec);

}  // namespace penstock
