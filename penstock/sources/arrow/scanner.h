#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/files/object_store.h"
#include "penstock/sources/memory/arrow_data.h"

namespace penstock {

/// What another library says of a file that it cannot read. Thrown by those
/// below; whoever called them names the file.
struct ScanFailure {
  std::string says;
  /// A part of the file: "its footer"; empty: the one that was read.
  std::string where = {};
  /// Where it is no other library that reports it: what to do.
  std::string next = {};
  bool no_memory = false;
  bool unsupported = false;  ///< the library lacks a type or an encoding
  bool of_store = false;     ///< an object store says it, and not of the file
};

/// Reads the chunks of a file, in any order. Belongs to one thread at a time.
class ChunkScan {
 public:
  virtual ~ChunkScan() = default;
  /// The next rows that are given are those of this chunk, from its first on.
  virtual void begin(std::int64_t chunk) = 0;
  /// Some rows, in order; null behind the last of the chunk. Throws
  /// ScanFailure.
  virtual std::shared_ptr<const ArrowTable> next() = 0;
};

/// A file that is open. Thread-safe.
class ScannedFile {
 public:
  /// No rows: the columns as given.
  std::shared_ptr<const ArrowTable> empty;
  /// By column: its type in the words of the library, and what it is where its
  /// layout does not say it: "json", "uuid", or nothing.
  std::vector<std::string> declared, meaning;
  /// By column: the classes that it is declared to have, as FileColumn::values.
  std::vector<std::vector<std::string>> classes;
  /// By chunk: the row after its last.
  std::vector<std::int64_t> chunk_ends;

  virtual ~ScannedFile() = default;
  /// What is read then holds these columns of `empty`, by name, and perhaps
  /// others.
  virtual std::unique_ptr<ChunkScan> scan(
      const std::vector<std::size_t>& columns) const = 0;
};

/// Opens Parquet and Arrow files by a library that is not linked to us.
/// Thread-safe.
class ArrowScanner {
 public:
  virtual ~ArrowScanner() = default;
  /// `kind` is "parquet" or "arrow"; the path may be a URI of an object store.
  /// Throws ScanFailure.
  virtual std::shared_ptr<const ScannedFile> open(const std::string& kind,
                                                  const std::string& path) = 0;
};

/// How Parquet and Arrow files and object stores are read: by the plugin for
/// the installed pyarrow, or by a scanner where no plugin fits.
class ArrowChoice {
 public:
  virtual ~ArrowChoice() = default;
  /// The folder of the installed package pyarrow; empty where none is known.
  /// The plugin that was built for its release uses its libraries.
  virtual std::string pyarrow() = 0;
  /// Whether the scanner reads even where a plugin could.
  virtual bool scanner_first() = 0;
  /// Throws Error(source) that says what to install.
  virtual std::shared_ptr<ArrowScanner> scanner() = 0;
  /// The object store that a URI names, without a plugin. Throws that, too, and
  /// what a store's functions throw.
  virtual std::shared_ptr<const files::ObjectStore> connect(
      const std::string& uri) = 0;
};

/// From now on `choice` is asked, and not that of a program
/// (child_scanner.h). Thread-safe.
void choose_arrow(std::shared_ptr<ArrowChoice> choice);

}  // namespace penstock
