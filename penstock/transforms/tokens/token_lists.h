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
  enum class Of : std::uint8_t { ids, labels };
  /// Stands in ids() for -100, which labels may be.
  static constexpr std::uint32_t kNoLabel = 0xffffffffU;

  /// Ids are from 0 to `most`.
  explicit TokenLists(std::int64_t most, Of of = Of::ids)
      : most_(most), of_(of) {}

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

  const std::int64_t most_;
  const Of of_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace penstock
