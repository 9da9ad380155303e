#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/base/file.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/table/block_parser.h"

namespace penstock {

/// The rows of one partition of a scan, their values in a file.
struct ScannedPart {
  std::vector<ParsedBlock> blocks;
  ParseNotes notes;
};

/// What a scan has parsed, partition by partition, in files of a folder beside
/// the store that it is for: one that is killed continues where it was. A file
/// is there whole or not at all, with checksums; one that is not as it was
/// written is made again. Rows by position alone. Thread-safe.
class ScanParts {
 public:
  /// Into how many partitions so many rows are divided, whoever does it: each
  /// is worth a file and soon parsed again, and there are enough for threads to
  /// end together.
  static int partitions(std::int64_t rows);

  /// The folder of the parts of a store.
  static std::filesystem::path folder_of(const std::filesystem::path& store);
  /// The file of a partition in such a folder.
  static std::filesystem::path file_of(const std::filesystem::path& folder,
                                       const Partition& partition);

  ScanParts(FileSystem& files, std::filesystem::path folder,
            BoundFields fields);

  /// What an earlier scan has left of a partition.
  std::optional<ScannedPart> find(const Partition& partition) const;

  /// Takes the blocks of one partition, in their order. One thread's.
  class Writer {
   public:
    Writer(const ScanParts& parts, const Partition& partition);
    /// Throws Error(request) where the file cannot be written, as seal() does.
    void add(ParsedBlock block);
    ScannedPart seal(ParseNotes notes);

   private:
    const ScanParts& parts_;
    const Partition& partition_;
    std::vector<ParsedBlock> blocks_;  // without their values
    std::size_t size_ = 0;             // of the array of values
    std::unique_ptr<StoreWriter> writer_;
  };

  /// Once the store is there.
  void remove() const;

 private:
  std::filesystem::path file_of(const Partition& partition) const {
    return file_of(folder_, partition);
  }
  Json about(const Partition& partition, const std::vector<ParsedBlock>& blocks,
             const ParseNotes& notes) const;
  std::optional<ParseNotes> notes_in(const Store& store) const;
  std::vector<ParsedBlock> blocks_in(
      const std::shared_ptr<const Store>& store) const;

  FileSystem& files_;
  const std::filesystem::path folder_;
  const BoundFields fields_;
};

}  // namespace penstock
