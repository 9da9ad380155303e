#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

// `source.stage`: the files of a source are copied to a RAM disk or to a local
// drive before they are read. A copy is a folder whose name is 32 hexadecimal
// digits, with the list "copied.jsonl" of what it holds: a file is copied when
// a line about this version of it is there. Several processes may ask for one
// copy: one of them makes it and the others wait.

/// The folder in which copies are made: what `stage` says.
std::filesystem::path folder_of_copies(const std::string& stage);

/// For people, a line of each source with `stage`: how much is to be copied
/// from where to where, whether it fits, and what that takes and gives by the
/// drive's measured rate. Empty if none exists. Nothing is copied.
std::string staging_text(const SourceSpec& spec);

/// For people: which files a source with `stage` names in its rows, and are not
/// copied, since the fields say where they are; a line of each such field.
std::string not_copied_text(const SourceSpec& spec,
                            const std::vector<Field>& fields);

/// What becomes of files that are in memory anyway.
enum class WhatIsInMemory { stays, is_copied };

/// Copies what a source with `stage` names, and those that it is made of, and
/// says in the spec where the copies are. What is copied already is not copied
/// again, a file that was cut off continues where it ended, and each copy is
/// read back and compared. Where the original is in memory anyway (tmpfs, the
/// page cache), nothing is copied. `note` is called with lines for people, from
/// the caller's thread.
///
/// Throws Error(request): source.stage (no such place), source.stage_room (it
/// does not fit; what was copied stays); Error(source): files.missing,
/// files.unreadable, files.changed, source.stage_damaged; and as stopped where
/// `stop` is set.
SourceSpec staged(SourceSpec spec,
                  const std::function<void(const std::string& line)>& note,
                  StopFlag stop, WhatIsInMemory in_memory = {});

}  // namespace penstock
