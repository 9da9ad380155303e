#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/dataset/table/left_out_keys.h"
#include "penstock/sampling/sampling.h"
#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// Fields over the columns of a source, and where a block holds them.
using BoundFields = std::vector<std::shared_ptr<const BoundField>>;

/// Binds fields to blocks that hold a column for each of
/// `requests_of(fields)`; `infos` and `types` are those of the requests.
BoundFields bind_fields(const std::vector<Field>& fields,
                        const std::vector<ColumnInfo>& infos,
                        const std::vector<ColumnType>& types);
/// The same over a source whose first requests are `requests_of(fields)`.
BoundFields bind_fields(const std::vector<Field>& fields, const Source& source);

/// An open source with fields over its columns, which are bound once, for all
/// who read it.
struct BoundSource {
  std::shared_ptr<Source> source;
  BoundFields fields;
};
/// As bind_fields(). Throws Error(source), code source.empty, where the source
/// has positions and is known to have no row.
BoundSource bound_source(const std::vector<Field>& fields,
                         std::shared_ptr<Source> source);

/// The rows of a block that belong to the data set, parsed.
struct ParsedBlock {
  KeyList keys;
  std::vector<Values> fields;       ///< by field
  std::vector<std::uint8_t> sides;  ///< what `side_of` said of each row
  /// One number per row, from its key and values: the same whatever source
  /// held them.
  std::vector<std::uint64_t> hashes;
  /// What draws_of() makes weights of; empty where rows are not drawn.
  std::vector<std::uint64_t> draws = {};

  std::int64_t rows() const { return static_cast<std::int64_t>(hashes.size()); }
  std::size_t bytes() const;  ///< of the values
};

/// A parsed row by where it arrived.
struct RowRef {
  std::uint32_t block;
  std::uint32_t row;
  friend bool operator==(const RowRef&, const RowRef&) = default;
};

/// A row that is left out because `source.on_bad` is `skip`, or that ends the
/// run because it is `stop`.
struct BadRow {
  Json key;
  std::string shown_key;  ///< "42", "'abc'"
  std::string column;
  std::string why;         ///< what was found and what was expected
  std::int64_t byte = -1;  ///< offset in the JSON text, when known
};

/// What parsers recorded, merged over all blocks before anything is decided
/// from it. The order of merging changes nothing once it is sorted.
struct ParseNotes {
  /// So many bad rows are kept with all that is known of them.
  static constexpr std::size_t kMostBad = 1000;

  std::vector<std::unique_ptr<FieldNotes>> fields;  ///< by field; may be null
  std::int64_t too_short = 0;  ///< rows left out by a field's own rule
  std::int64_t bad_rows = 0;   ///< all of them
  std::vector<BadRow> bad;     ///< the first by key, at most kMostBad
  LeftOutKeys left_out;        ///< of rows that are too short or bad

  void merge(ParseNotes&& other);
  /// Brings `bad` into the order of keys: once, after the last merge.
  void sort();

 private:
  void keep_first();
  /// The key of the last bad row that is kept, once there are too many.
  std::string last_bad_;
};

/// Turns blocks into parsed rows, all fields of them. One per thread: it owns
/// scratch memory and allocates nothing per row once warm.
class BlockParser {
 public:
  /// A block holds the columns of the fields, then the split's column when
  /// `by_column` is true (else `side_of` is given the key), and last that of
  /// `drawing`. `side_of` sees
  /// the bytes of that value: 8 of an integer (also of a whole float64 and of
  /// a boolean) or of a float64, little-endian; the text; the 16 of a uuid;
  /// none of a NULL. Without it all sides are 0.
  struct Options {
    BoundFields fields;
    std::vector<std::string> names = {};    ///< of the fields, for errors
    std::vector<std::string> columns = {};  ///< those of the fields, by name
    bool by_column = false;
    std::string by_name = {};  ///< of the split's column, for messages
    std::function<std::uint8_t(std::string_view by_value)> side_of = {};
    Drawing drawing = {};
    std::shared_ptr<const RowParts> parts = nullptr;  ///< SourceFacts::parts
    bool keeps_values = true;  ///< false: only keys, sides and hashes
    /// Values are the parser's own, until it parses the next block.
    bool lends_values = false;
    /// Hashes are the same whatever width a source gives its numbers. False:
    /// they only tell a row from the same one of this source after a change.
    bool canonical = true;
    /// Also rejects what only checking parsers see.
    bool checks = false;
  };
  explicit BlockParser(Options options);
  ~BlockParser();
  BlockParser(BlockParser&&) noexcept;

  /// Bad rows and short rows go to `notes`, all others to the result. Throws
  /// nothing because of data.
  ParsedBlock parse(const KeyList& keys, const Block& block, ParseNotes& notes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
