#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/columns.h"
#include "penstock/sources/files/row_file.h"
#include "penstock/sources/files/served_column.h"

namespace penstock::files {

/// A column of a set of files.
struct SetColumn {
  FileColumn column;  ///< as conditions and requests see it
  /// What makes it of the files' own, where `source.columns` sets it.
  std::optional<ServedColumn> chosen = std::nullopt;
  FileColumn in_files = {};  ///< as the files have it
  bool partition = false;    ///< it stands in the names of folders
};

/// The files of a source, open, with one set of columns. Immutable.
struct FileSet {
  std::vector<DataFile> data;
  std::vector<std::shared_ptr<const RowFile>> files;
  std::vector<SetColumn> columns;
  /// By file, then column: which of the file's own; -1: it has none.
  std::vector<std::vector<std::int64_t>> places;
  /// By file, then column: of partitions; empty: NULL.
  std::vector<std::vector<std::string>> partitions;

  std::vector<FileColumn> seen() const;
  /// Which of the file's own columns make up `columns` of the set.
  std::vector<std::size_t> own_columns(
      std::size_t file, const std::vector<std::size_t>& columns) const;
  Schema schema() const;
};

/// Throws Error(source), files.schema, for files that differ, and
/// Error(request) for `source.columns` that cannot be.
FileSet open_set(const SourceSpec& spec, const FileKind& kind, StopFlag stop);

/// A column that every source of files has when it is asked for.
inline constexpr const char* kPathColumn = "path";

/// Adds that column, where files have none of this name: which file a row is
/// in, below `source.path`.
void add_path(FileSet& set);

/// Reads chosen columns of chunks of a set as conditions see them. One
/// thread's.
class SetReader {
 public:
  /// `columns` are numbers of FileSet::columns, any of them more than once.
  SetReader(std::shared_ptr<const FileSet> set,
            std::vector<std::size_t> columns);
  void read(std::size_t file, std::int64_t chunk, const PieceSink& sink);
  /// As those of ChunkReader.
  Placed place(std::size_t file, std::int64_t chunk,
               std::span<const std::int64_t> rows,
               std::span<const std::size_t> places, Block& to, bool wait);
  void again(bool yes) { again_ = yes; }
  void took(std::size_t file, std::int64_t chunk, std::int64_t rows) {
    if (file == file_ && reader_ != nullptr) reader_->took(chunk, rows);
  }

 private:
  void open(std::size_t file);
  Block completed(Block&& piece) const;
  Block repeated(Block&& piece) const;
  Column constant(std::size_t column, std::int64_t rows) const;

  const std::shared_ptr<const FileSet> set_;
  std::vector<std::size_t> columns_;  // each once
  std::vector<std::size_t> places_;   // of those asked for, in columns_
  std::size_t file_ = static_cast<std::size_t>(-1);
  bool again_ = false;
  std::unique_ptr<ChunkReader> reader_;
};

}  // namespace penstock::files
