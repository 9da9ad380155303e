#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "penstock/dataset/table/block_parser.h"

namespace penstock {

using RangeWork = std::function<void(std::int64_t begin, std::int64_t end)>;
/// Calls `work` for ranges that make up [0, count), on several threads where
/// it pays.
using ShareOut = std::function<void(std::int64_t count, const RangeWork& work)>;

/// The parsed rows of a data set by sample id. Refers to the blocks.
struct RowsById {
  std::vector<ParsedBlock>& blocks;
  std::vector<RowRef> refs;  ///< by sample id

  std::int64_t count() const { return static_cast<std::int64_t>(refs.size()); }
  RowRef ref(SampleId id) const { return refs[static_cast<std::size_t>(id)]; }
  ParsedBlock& block(SampleId id) const { return blocks[ref(id).block]; }
  ValueRow row(SampleId id, std::size_t field) const {
    return block(id).fields[field].row(ref(id).row);
  }
  std::uint8_t side(SampleId id) const { return block(id).sides[ref(id).row]; }
};

/// Rows that are stored, and turned out to be damaged when they were encoded:
/// each is a bad sample of the batches that it comes in.
using DamagedRows = std::map<SampleId, RowFault>;

/// A byte for each row: its Side.
std::vector<std::byte> sides_of(const RowsById& rows);
/// What draws_of() takes, of the rows on the side train.
std::vector<std::uint64_t> draws_in(const RowsById& rows);

/// Leaves as many rows on each side as `split` says. The others keep their ids,
/// unused, or, where not `keep_ids`, are left out.
void keep_most(const Split& split, bool keep_ids, RowsById& rows);

/// Rows of one source over which fields are fitted.
struct FitRows {
  const BoundFields& fields;
  const ParseNotes& notes;
  const RowsById& rows;
  const ShareOut& share_out;
};

/// Finds the statistics of all fields over rows whose side is 0 (train), in
/// fixed blocks of ids, so that threads, blocks and sources change no bit. One
/// entry per field; null for a field without statistics. Throws
/// Error(transform).
std::vector<Json> fit_fields(const FitRows& rows);
/// Those of one field, whose settings are the same everywhere, over the rows of
/// several sources, one after the other. Null where it has none.
Json fit_together(std::size_t field, std::span<const FitRows> sources);

/// Writes stored rows, all fields of them. One per thread.
class RowEncoder {
 public:
  /// `statistics` as fit_fields() gives them; `names` of the fields. Throws
  /// Error(request) where they belong to other fields. Errors say where rows of
  /// `source` are written.
  RowEncoder(const BoundFields& fields, const std::vector<Field>& names,
             const RowLayout& layout, const std::vector<Json>& statistics,
             const Source* source = nullptr);

  /// The rows [first, end) by id, one after the other at `out`; the runs of
  /// field f are appended to `runs[f]`. Throws Error(transform) for a row that
  /// cannot be encoded: it has its id already. Those that are damaged are
  /// rejected, by row from `first` on, where `damaged` is given.
  void encode(const RowsById& rows, SampleId first, SampleId end,
              std::byte* out, std::span<Values> runs = {},
              Faults* damaged = nullptr);
  /// `count` rows, whose values `row_of` gives. Those that cannot be encoded
  /// are rejected, by row; their run is there all the same.
  using ValuesOf = std::function<ValueRow(std::int64_t row, std::size_t field)>;
  void encode(std::int64_t count, const ValuesOf& row_of, std::byte* out,
              std::span<Values> runs, Faults& faults);
  /// A whole block, row by row; else as rows by id.
  void encode(const ParsedBlock& block, std::byte* out,
              std::span<Values> runs = {}, Faults* damaged = nullptr);

 private:
  /// `rejected` is called with each fault.
  template <class RowOf, class Rejected>
  void encode_rows(std::int64_t count, std::byte* out, std::span<Values> runs,
                   RowOf row_of, Rejected rejected);

  struct Part {
    std::unique_ptr<FieldEncoder> encoder;
    std::size_t offset;     // of the field in a row
    std::size_t run_bytes;  // of an element of its run; 0: it has none
    std::size_t most_elements;
    std::string name;
  };
  void check_runs(const Part& part, const Values& runs,
                  std::int64_t before) const;
  /// Throws for row `at` of `keys`, unless it is damaged and may be rejected.
  void judge(RowFault fault, const KeyList& keys, std::int64_t at,
             Faults* damaged) const;

  std::vector<Part> parts_;
  std::size_t stride_;
  const Source* source_;
  std::vector<ValueRow> rows_;
  Faults faults_;
};

}  // namespace penstock
