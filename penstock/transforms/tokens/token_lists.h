#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {

/// Token ids of rows that hold them already: lists of integers, or JSON texts
/// of such. One per thread.
class TokenLists {
 public:
  /// Ids are below `vocab_size`, or below 2^32 where it is 0.
  explicit TokenLists(std::int64_t vocab_size)
      : most_((vocab_size > 0 ? vocab_size : std::int64_t{1} << 32) - 1),
        vocab_size_(vocab_size) {}

  /// True for columns that may hold such rows.
  static bool reads(const ColumnType& type);

  /// What is wrong with the row, which is valid; empty: nothing, and ids()
  /// holds what it does.
  std::string read(const Column& column, std::int64_t row);
  const std::vector<std::uint32_t>& ids() const { return ids_; }

 private:
  std::string read_list(const Column& column, std::int64_t row);
  std::string read_json(std::string_view text);
  std::string refused(std::size_t at, const std::string& found) const;

  const std::int64_t most_, vocab_size_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace penstock
