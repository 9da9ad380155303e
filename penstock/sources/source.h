#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/columns.h"
#include "penstock/base/json.h"
#include "penstock/base/key.h"

namespace penstock {

/// What a source can do. Every source can be scanned.
struct Abilities {
  bool by_key = false;       ///< rows have keys, and read() takes them
  bool by_position = false;  ///< rows are numbered from 0: read() takes numbers
  /// Scans give rows by ascending key or position, partition after partition.
  bool sorted = false;
  /// One reader of the whole process works at a time, as where a library has
  /// one lock for everything. `open_checked_reader` sees to it; a second
  /// reader gains nothing.
  bool global_lock = false;
  /// Its rows are in this process's memory, column by column, as they are read.
  bool in_memory = false;
};

/// How many rows there are; none where finding out would cost a scan.
struct RowCount {
  std::optional<std::int64_t> rows = std::nullopt;
  bool exact = false;
};

/// A block holds at most this much. A row that is longer by itself is a block
/// of its own.
struct BlockLimit {
  std::int64_t rows = 1024;  // of 1 KB rows: stays in the processor's cache
  std::size_t bytes = std::size_t{4} << 20;
};

/// The rows of one read, by key or by position, in any order and any of them
/// more than once. Borrows what it is made of.
struct ReadRequest {
  ReadRequest(const KeyList& of) : keys(&of) {}
  ReadRequest(std::span<const std::int64_t> of) : positions(of) {}
  ReadRequest(const std::vector<std::int64_t>& of) : positions(of) {}

  const KeyList* keys = nullptr;  ///< null: by position
  std::span<const std::int64_t> positions = {};
  /// Where the numbers, within the request, of rows that are gone are put:
  /// nulls then stand in their place. Null: a row that is gone is an error.
  std::vector<std::int64_t>* gone = nullptr;

  std::int64_t rows() const {
    return keys != nullptr ? keys->size() : std::ssize(positions);
  }
  /// The row in a message: "key 42", "position 7".
  std::string shown(std::int64_t row) const;
};

/// Host memory that one reader takes, about, beside the blocks that it gives;
/// 0: little.
struct ReaderMemory {
  std::size_t scanning = 0;
  std::size_t by_position = 0;  ///< with the chunk that it keeps
};

/// Which rows a source by position reads and decodes together, so that rows of
/// one chunk are requested together.
struct ChunkMap {
  std::vector<std::int64_t> ends;  ///< by chunk: the position after its last
  double chunk_ns = 0;  ///< a guess of what reading one costs; 0: unknown
  /// Bytes of all chunks when they are decoded, and how many of them the source
  /// keeps in memory for the next read. Both 0 where decoding costs little.
  std::size_t decoded_bytes = 0, kept_bytes = 0;
  ReaderMemory reader = {};

  std::int64_t chunk_of(std::int64_t position) const;
};

/// Names of parts of rows by position, as files are, one behind the other: a
/// few bytes each, since every picture of a folder is one. Thread-safe once it
/// is made.
class RowParts {
 public:
  /// `end`: the position after its last row.
  void add(std::string_view name, std::int64_t end);
  /// For so many parts, whose names have so many bytes.
  void reserve(std::size_t parts, std::size_t bytes);
  /// A part of one row for each of `sizes`, the lengths of their names, which
  /// lie in `names`, each before a '\0'.
  void add_single(std::string_view names, std::span<const std::uint32_t> sizes);

  std::size_t size() const { return name_ends_.size(); }
  /// No name holds a '\0'.
  std::string_view name(std::size_t part) const;
  std::int64_t begin(std::size_t part) const {
    return part == 0 ? 0 : end(part - 1);
  }
  std::int64_t end(std::size_t part) const {
    return ends_.empty() ? static_cast<std::int64_t>(part) + 1 : ends_[part];
  }
  /// size(): none holds this row.
  std::size_t part_of(std::int64_t position) const;
  /// The names of parts, each before a '\0'.
  std::string_view names(std::size_t from, std::size_t to) const;

 private:
  std::size_t begin_of_name(std::size_t part) const {
    return part == 0 ? 0 : name_ends_[part - 1];
  }
  std::string names_;
  std::vector<std::size_t> name_ends_;  // behind each '\0'
  std::vector<std::int64_t> ends_;      // empty: each part is one row
};

/// What names a row, also when other parts are added: the name of its part and
/// its number there; without parts, its position. Valid until the next call.
class RowNames {
 public:
  explicit RowNames(std::shared_ptr<const RowParts> parts = nullptr)
      : parts_(std::move(parts)) {}
  std::string_view of(std::int64_t position);

 private:
  const std::shared_ptr<const RowParts> parts_;
  std::int64_t position_ = 0;
  std::string name_;
};

/// A part of one consistent scan of all rows. The partitions of one scan show
/// the same snapshot, which ends when the last of them is destroyed.
struct Partition {
  std::string range;  ///< for messages: "rows 1..4096"; source's own meaning
  std::int64_t index = 0;
  std::shared_ptr<void> snapshot = nullptr;
  /// Of a source by position: its rows, without `end`.
  std::int64_t first = 0, end = 0;
};

/// Takes the next rows of a scan: their keys (of a source by position their
/// positions, of one that has neither nothing) and their columns, as they were
/// requested. It may move both away, and ends the scan by returning false.
using BlockSink = std::function<bool(KeyList& keys, Block& block)>;

/// Reads rows; belongs to one thread at a time.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Hands every row of `partition` to `sink`. Throws Error(source). May wait
  /// for another reader's scan of the same snapshot, so no sink begins one in
  /// its own thread. Written here for sources by position, over read().
  virtual void scan(const Partition& partition, BlockLimit limit,
                    const BlockSink& sink);
  /// Fills `out` with these rows, in this order. A row that is gone is an
  /// Error(source) that names it, unless the request collects such rows.
  virtual void read(const ReadRequest& request, Block& out) = 0;
};

/// What is known of a source once it is open, without reading a row.
struct SourceFacts {
  std::string shown;  ///< for messages, without secrets: "t in train.sqlite"
  Schema schema;      ///< all columns, whether requested or not
  /// The type that a block's column has for each request, in order.
  std::vector<ColumnType> types;
  Abilities abilities;
  ColumnType key = ColumnType::int64;  ///< of the keys, or of positions
  /// Of rows by position that are in several parts, to which others may be
  /// added: all of them, in order; else null. A split by rows goes by RowNames.
  std::shared_ptr<const RowParts> parts = nullptr;
  /// Null where rows are read one by one.
  std::shared_ptr<const ChunkMap> chunks = nullptr;
  /// What it is, in named parts and without secrets: the kind, the place, the
  /// table, the columns, the condition, and what distinguishes one version of
  /// the rows from the next where that is known without reading them.
  Json identity = Json(Json::Object{});
  /// It is gone: this is what the store of its rows says of it, and only that
  /// store can be read.
  bool of_store = false;
};

/// A place that holds records. Thread-safe; readers are not.
///
/// Opening checks that the table and the requested columns exist, so a Source
/// that exists can be read. It owns no threads.
class Source {
 public:
  explicit Source(SourceFacts facts) : facts_(std::move(facts)) {}
  virtual ~Source() = default;

  const SourceFacts& facts() const { return facts_; }
  const std::string& shown() const { return facts_.shown; }
  const Schema& schema() const { return facts_.schema; }
  const std::vector<ColumnType>& types() const { return facts_.types; }
  const Abilities& abilities() const { return facts_.abilities; }
  const ChunkMap* chunks() const { return facts_.chunks.get(); }
  const Json& identity() const { return facts_.identity; }
  /// Adds settings whose values decide what is read, before anyone has asked
  /// for the identity. None are added where all have their defaults.
  void identify_by(const Json& settings) {
    if (!settings.object().empty()) facts_.identity["settings"] = settings;
  }

  /// What tells these rows from those of an earlier time, or of a copy, where
  /// that takes a look at each of many files; "": identity() says all. Asked by
  /// those who keep rows longer than the process lives.
  virtual std::string version_of_copy() const { return {}; }
  /// May cost a statement. Exact, and always the same, by position.
  virtual RowCount count() const = 0;
  /// One consistent scan for at most `readers` readers at a time: at least one
  /// part, and more than `readers` where parts may differ much in size.
  /// Written here for sources by position: as many parts as readers, which
  /// begin where chunks begin.
  virtual std::vector<Partition> partitions(int readers);
  /// Where a row by position is written, for messages: "train.jsonl:51"; empty
  /// where that is not known. Slow: it reads.
  virtual std::string place_of(std::int64_t /*position*/) const { return {}; }
  /// How many elements the rows from `first` on have in the column of a
  /// request (bytes, of text and binary). False where that is not known without
  /// reading them.
  virtual bool lengths(std::size_t /*request*/, std::int64_t /*first*/,
                       std::span<std::int32_t> /*out*/) const {
    return false;
  }
  virtual std::unique_ptr<Reader> open_reader() = 0;

 protected:
  SourceFacts facts_;  // complete once it is made
};

}  // namespace penstock
