#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/files/row_file.h"

namespace penstock::files {

/// A condition over the columns of files, as `source.where` has it:
/// comparisons (= == <> != < <= > >=), AND, OR, NOT, [NOT] IN (...),
/// [NOT] BETWEEN, IS [NOT] NULL, [NOT] LIKE with ESCAPE, a column of numbers
/// or booleans by itself, TRUE, FALSE, NULL, numbers, 'text', and names of
/// columns, in "quotation marks" where they are no plain words.
///
/// The logic is SQL's, of three values: a row is kept where the condition is
/// true. Text compares by UTF-8 bytes, LIKE without regard to the case of ASCII
/// letters, numbers exactly, whatever their widths; NaN is NULL; a time
/// compares with seconds since 1970 or with an ISO-8601 text.
struct Condition {
  enum class Kind : std::uint8_t {
    column,
    number,
    text,
    null,
    compare,
    both,  ///< AND
    either,
    no,
    is_null,
    in,
    between,
    like,
  };
  enum class Order : std::uint8_t { equal, other, less, most, more, least };

  Kind kind = Kind::null;
  std::size_t position = 0;  ///< in the text
  std::size_t column = 0;    ///< of a column: which of `columns`
  long double number = 0;    ///< holds every int64, uint64 and double
  std::string text;          ///< also the name of a column
  Order order = Order::equal;
  bool negated = false;          ///< IS NOT NULL, NOT IN, NOT BETWEEN, NOT LIKE
  std::string escape;            ///< of LIKE; empty: none
  std::vector<Condition> parts;  ///< operands
};

/// A condition that is understood and checked. Immutable, so thread-safe.
class Where {
 public:
  /// Throws Error(request), source.where, with the position in the text of what
  /// is not understood, no column, or compared with what it cannot be.
  Where(const std::string& text, const std::vector<FileColumn>& columns);

  /// The columns that it reads, each once.
  const std::vector<std::size_t>& columns() const { return columns_; }
  const Condition& condition() const { return condition_; }

  /// The rows of a block for which it is true, ascending. The block's column
  /// `first` + i is columns()[i].
  void select(const Block& block, std::size_t first,
              std::vector<std::int64_t>& rows) const;
  /// False where no row of a chunk with such bounds, by columns(), can be
  /// selected.
  bool may_select(const std::vector<ChunkBounds>& bounds) const;

 private:
  std::vector<std::size_t> columns_;
  Condition condition_;
};

/// The syntax alone: names of columns are in `text`. Throws as above; `columns`
/// are for its advice.
Condition parse_condition(const std::string& text,
                          const std::vector<std::string>& columns);

/// Replaces names by numbers of columns, and gives those columns, each once.
/// Throws as above for what is no column or compared with what it cannot be.
std::vector<std::size_t> bind_condition(const std::string& text,
                                        const std::vector<FileColumn>& columns,
                                        Condition& condition);

/// Error(request) about what stands at `position` of a condition.
Error bad_condition(const std::string& text, std::size_t position,
                    std::string why, std::string next);

/// Without regard to the case of ASCII letters.
bool same_ascii(std::string_view a, std::string_view b);

/// SQL's LIKE: % is any text, _ one character; ASCII letters match in any case.
bool is_like(std::string_view text, std::string_view pattern,
             std::string_view escape);

}  // namespace penstock::files
