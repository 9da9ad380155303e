#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/cache/cache.h"
#include "penstock/dataset/table/block_parser.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// What the store of a table's rows was made from: makes its bytes again where
/// they are damaged, while a run is running.
///
/// Rows and their runs are read from the source by key or position and encoded
/// with the stored statistics; anything else (keys, sides, lengths) needs the
/// whole store, which is made as the first run made it. One thread's at a time.
class StoreRemaker {
 public:
  /// `parsing` as the rows were parsed. The source is shared with the data set.
  StoreRemaker(TableDatasetOptions options, std::shared_ptr<Source> source,
               BlockParser::Options parsing, RowLayout layout);

  /// Store::Remake. Throws Error(source), files.changed, for rows that are not
  /// what they were, and what the source throws.
  void remake(const Store& store, const std::string& array, std::size_t begin,
              std::span<std::byte> out) const;

  /// Writes the whole store again and renames it over the old one, unless
  /// another process has just done so. Throws what preparing the rows throws.
  void rebuild(bool with_statistics) const;

 private:
  struct Rows;
  Rows encoded(const Store& store, std::int64_t first, std::int64_t end) const;
  void copy_rows(const Store& store, std::size_t begin,
                 std::span<std::byte> out) const;
  void copy_runs(const Store& store, std::size_t field, std::size_t begin,
                 std::span<std::byte> out) const;

  const TableDatasetOptions options_;
  const std::shared_ptr<Source> source_;
  const BlockParser::Options parsing_;
  const RowLayout layout_;
};

}  // namespace penstock
