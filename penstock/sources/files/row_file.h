#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/json.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/source.h"
#include "penstock/sources/stop.h"

namespace penstock::files {

/// A column as files hold it.
struct FileColumn {
  std::string name;      ///< "a.b": the member b of a column a
  std::string declared;  ///< the format's own word: "timestamp[us]"
  ColumnType type;       ///< of the blocks that its reader gives
  /// Its numbers are seconds since 1970 UTC; text is taken as ISO-8601.
  bool timestamp = false;
  /// Of a tensor whose rows all have one shape: that shape, which all files of
  /// a source must have.
  Shape item = {};
  bool item_varies = false;              ///< files may differ in it after all
  std::vector<std::string> values = {};  ///< as ColumnInfo has them
  std::string index = {};                ///< the same
};

/// A column that is read, and the windows that are its rows (see
/// ColumnRequest).
struct ReadColumn {
  std::size_t column = 0;  ///< which of FileFacts::columns
  std::int64_t window = 0, stride = 0;
  bool as_number = false;  ///< numbers are wanted of it
  /// Documents are: a number or a list is not a document.
  bool as_document = false;
};

/// What is known of the values of a column in one chunk, without reading it.
struct ChunkBounds {
  long double min = 0, max = 0;  ///< of numbers, exactly
  bool known = false;
};

/// Whether rows were put there.
enum class Placed : std::uint8_t {
  yes,
  no,     ///< they cannot be, in this way
  later,  ///< another reader decodes them just now
};

/// Takes the next rows of a chunk. False: no more are needed.
using PieceSink = std::function<bool(Block&& piece)>;

/// Reads chunks of one file; belongs to one thread at a time.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;
  /// Hands the rows of a chunk to `sink`, in their order, in pieces that hold
  /// the requested columns. Throws Error(source) with the file and the rows.
  virtual void read(std::int64_t chunk, const PieceSink& sink) = 0;
  /// Puts rows of a chunk, of which `rows` are the numbers there, ascending, to
  /// `places` in `to`, which has the requested columns, where that takes less
  /// than read() and a copy of them. Unless `yes`, what was written is of no
  /// account; `later` where it shall not `wait`.
  virtual Placed place(std::int64_t /*chunk*/,
                       std::span<const std::int64_t> /*rows*/,
                       std::span<const std::size_t> /*places*/, Block& /*to*/,
                       bool /*wait*/) {
    return Placed::no;
  }
  /// Whether a chunk may be needed again; else it is read once, as in a scan.
  virtual void again(bool /*yes*/) {}
  /// So many rows of a chunk were taken by position: one of which all were is
  /// the first to be let go.
  virtual void took(std::int64_t /*chunk*/, std::int64_t /*rows*/) {}
};

/// What is known of a file once it is open, without reading a row.
struct FileFacts {
  /// All that can be read, whatever is read: in the file's own order, with
  /// names that differ.
  std::vector<FileColumn> columns;
  /// By chunk: the row after its last.
  std::vector<std::int64_t> chunk_ends;
  /// As Schema::left_out: what cannot be read, or not beside most columns.
  std::vector<LeftOutColumn> left_out;
  std::vector<Doubt> doubts;  ///< as Schema::doubts
  /// Files besides its own that hold some of these rows: those that virtual
  /// data sets map, and the file of source.labels. Each once.
  std::vector<DataFile> other_files;
  /// As those of ChunkMap; what is kept is of all files of a source.
  std::size_t decoded_bytes = 0, kept_bytes = 0;
};

/// The rows of one file, in chunks that are decoded together. Thread-safe.
class RowFile {
 public:
  virtual ~RowFile() = default;
  const FileFacts& facts() const { return facts_; }
  /// `columns` are numbers of FileFacts::columns.
  virtual std::unique_ptr<ChunkReader> open(
      const std::vector<std::size_t>& columns) const = 0;
  /// Where `known`, no value of the column in that chunk lies outside: chunks
  /// are then left out by it. Reads nothing.
  virtual ChunkBounds bounds(std::int64_t /*chunk*/,
                             std::size_t /*column*/) const {
    return {};
  }
  /// Of a reader of these columns.
  virtual ReaderMemory reader_memory(
      const std::vector<std::size_t>& /*columns*/) const {
    return {};
  }
  /// Where a row is written, for messages: "a.csv:12"; empty: not known.
  virtual std::string place_of(std::int64_t /*row*/) const { return {}; }
  /// The file as a source sees it that reads these columns, where its rows
  /// depend on them, as those of arrays do: their lengths, or windows. Null:
  /// they do not. Throws Error(source) where they have no rows in common.
  virtual std::shared_ptr<const RowFile> for_columns(
      const std::vector<ReadColumn>& /*columns*/) const {
    return nullptr;
  }

  std::int64_t rows() const {
    return facts_.chunk_ends.empty() ? 0 : facts_.chunk_ends.back();
  }
  /// The first row of a chunk.
  std::int64_t chunk_begin(std::int64_t chunk) const {
    return chunk == 0 ? 0 : chunk_end(chunk - 1);
  }
  std::int64_t chunk_end(std::int64_t chunk) const {
    return facts_.chunk_ends[static_cast<std::size_t>(chunk)];
  }

 protected:
  FileFacts facts_;  // complete once it is made
};

/// What `open` makes of each file, one after the other: for FileKind::open of
/// files that need not know of each other.
template <class Open>
std::vector<std::shared_ptr<const RowFile>> open_each(
    const std::vector<DataFile>& files, StopFlag stop, const Open& open) {
  std::vector<std::shared_ptr<const RowFile>> all;
  for (const DataFile& file : files) {
    end_if_stopped(stop);
    all.push_back(open(file));
  }
  return all;
}

/// A kind of source that is made of files, to its plugin.
struct FileKind {
  SourceKind about;
  /// Opens all files of a source: their columns are then known, and how many
  /// rows they have.
  std::function<std::vector<std::shared_ptr<const RowFile>>(
      const SourceSpec& spec, const std::vector<DataFile>& files,
      StopFlag stop)>
      open;
  /// Finds the files that `path` names.
  std::function<std::vector<DataFile>(const SourceSpec& spec,
                                      const SourceKind& kind)>
      find = find_files;
  bool in_memory = false;  ///< as Abilities::in_memory
};

}  // namespace penstock::files
