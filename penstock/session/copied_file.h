#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock {

/// Copies a file to `to`, whose folders are made, with its time of change. Of
/// an earlier copy of this version that was cut off what is the same is kept.
/// What is written is read back and compared. `seen` is called with the bytes
/// of each piece, and may throw: what was copied then stays for the next time.
/// Gives the hash of the file: hash64 of each 4 MiB under the hash of those
/// before.
///
/// Throws Error(source): files.unreadable, files.changed,
/// source.stage_damaged; Error(request): source.stage_room, file.write.
std::uint64_t copy_file(const StagedFile& file, const std::filesystem::path& to,
                        bool to_memory,
                        const std::function<void(std::int64_t bytes)>& seen);

/// How much of these files the system keeps in memory, of 64 of them at most; 0
/// where it does not say.
double share_in_page_cache(const std::vector<std::filesystem::path>& files);

}  // namespace penstock
