#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/files/data_files.h"
#include "penstock/sources/hdf5/index.h"

namespace penstock::hdf5 {

/// What the index program sent about a file.
struct SentIndex {
  std::string json;
  std::vector<std::vector<ChunkPlace>> chunks;
};

/// What an earlier start kept of this file in the user's cache folder; nullopt:
/// nothing, or it cannot be used: the file has changed since, another program
/// has it open for writing, or what was kept is damaged. Never throws.
std::optional<SentIndex> kept_index(const files::DataFile& file);

/// Keeps a large index; a small one is soon made again. Not where the file
/// changed in the two seconds before: it could change again without a later
/// time. Never throws: the next start then indexes the file again.
void keep_index(const files::DataFile& file, const SentIndex& sent);

}  // namespace penstock::hdf5
