#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/files/file_set.h"
#include "penstock/sources/files/where.h"
#include "penstock/sources/source.h"

namespace penstock::files {

/// What the source and its readers share; immutable.
struct OpenedFiles {
  SourceSpec spec;
  std::shared_ptr<const FileSet> set;
  std::vector<std::size_t> columns;  // of the set: those of requests, of where
  std::vector<ServedColumn> served;  // by request
  /// By file: FileFacts::other_files.
  std::vector<std::vector<DataFile>> others;
  std::optional<Where> where;
  StopFlag stop;
  ChunkMap chunks;
  std::vector<std::pair<std::size_t, std::int64_t>> places;  // by chunk

  std::int64_t rows() const {
    return chunks.ends.empty() ? 0 : chunks.ends.back();
  }
  std::int64_t first_of(std::int64_t chunk) const {
    return chunk == 0 ? 0 : chunks.ends[static_cast<std::size_t>(chunk - 1)];
  }
};

/// "day*.csv and 2 more".
std::string place_of(const SourceSpec& spec);

/// Rows of a piece that the condition keeps, ascending, and those of which it
/// cannot be said, since a column that it reads (`first` and later ones) has a
/// problem there: `on_bad` decides about them.
void select_rows(const Where& where, const Block& piece, std::size_t first,
                 std::vector<std::int64_t>& rows);

std::unique_ptr<Reader> make_file_reader(
    std::shared_ptr<const OpenedFiles> opened);

}  // namespace penstock::files
