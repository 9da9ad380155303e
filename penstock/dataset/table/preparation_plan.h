#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/dataset/table/block_parser.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// What is asked of a field's samples, as far as it decides how the rows are
/// prepared.
struct AskedField {
  std::string name = {};
  bool fitted = false;         ///< it needs statistics of the data
  bool may_leave_out = false;  ///< it may leave rows out
  bool varies = false;         ///< its samples differ in length
  bool lengths_known = false;  ///< which the source knows without reading them
  bool most_known = true;      ///< how long they may be
  std::optional<Packing::How> packed = {};  ///< into bins; missing: not at all
};

/// The same of all rows.
struct AskedRows {
  std::vector<AskedField> fields = {};
  std::size_t row_bytes = 0;  ///< as stored, without runs
  bool split_by_column = false;
  bool drawn = false;          ///< by a column
  bool skips_bad = false;      ///< bad rows are left out beforehand
  std::string cache = "auto";  ///< as TableDatasetOptions has it
  bool budgets = false;        ///< some are given
  bool stores = true;          ///< stores are read, and may be written
  Preparing preparing = Preparing::automatic;
  bool opens_again = false;  ///< the source can be read beside the batches
  bool plan_only = false;
};

/// What a source can do.
struct SourceTraits {
  std::string shown = {};
  bool by_key = false, by_position = false;
  /// By position, where that is known exactly.
  std::optional<std::int64_t> rows = {};
  bool in_memory = false;  ///< column by column
  bool of_store = false;   ///< it is what a store says of a source
  std::optional<std::size_t> chunks =
      {};  ///< missing: rows are read one by one
  /// One row costs what its whole chunk does.
  bool decodes_chunks = false;
};

/// What there is to prepare rows with.
struct MachineFacts {
  bool device_is_host = true;
  std::optional<std::size_t> memory_free = {};  ///< missing: nobody knows
};

/// What rows become, before samples are packed or mixed.
enum class RowsForm : std::uint8_t {
  scanned,      ///< a TableDataset, of a scan or of the store of an earlier run
  by_position,  ///< an IndexedDataset
  beside,       ///< the same, of which all rows are packed beside the batches
  growing,      ///< a GrowingDataset, where their store does not have them all
};

/// "scanned", "by_position", "beside" or "growing".
std::string_view name_of(RowsForm form);

/// What names rows, so that a saved position is of use for these alone.
enum class RowsIdentity : std::uint8_t {
  contents,  ///< what a scan found
  source,    ///< what their source and the fields are, scanned or not
  stored,    ///< the same, without what only batches depend on
};

/// How rows are prepared. It depends on what is asked and on the source, never
/// on statistics of an earlier run, so that a run that is resumed has the data
/// set (and the fingerprint) that it was saved with.
struct PreparationPlan {
  RowsForm form = RowsForm::scanned;
  std::string reason = {};  ///< why this form, for people
  RowsIdentity identity = RowsIdentity::contents;
  /// The rows' fingerprint where their contents do not decide it; else empty.
  std::string fingerprint = {};
  bool uses_store = true;  ///< one is looked for, and may be written

  bool operator==(const PreparationPlan&) const = default;

  Json json() const;  ///< {"form", "reason"}
};

/// "the rows are scanned before the first batch: samples are numbered by their
/// keys". `form` is what name_of() gives. A form of a newer version is shown by
/// its name.
std::string preparation_text(std::string_view form, std::string_view reason);

/// A pure function. Throws Error(request), code data.not_meanwhile, where rows
/// are asked to be prepared while batches are made, and cannot be.
PreparationPlan decide(const AskedRows& rows, const SourceTraits& source,
                       const MachineFacts& machine);

/// The same of a source that was opened with `requests_of(options)`, on this
/// machine, with the fingerprint.
PreparationPlan plan_preparation(const TableDatasetOptions& options,
                                 const BoundSource& source,
                                 const MachineFacts& machine);

/// Why rows of these fields cannot be read by position; empty: they can.
/// `fitted`: their statistics are there.
std::string why_not_by_position(const std::vector<Field>& fields,
                                const Split& split, bool fitted,
                                const BoundSource& source);

/// What is asked of the rows of such a source. Of fields only what they are by
/// themselves, where it cannot be read by position.
AskedRows asked_rows(const TableDatasetOptions& options,
                     const BoundSource& source);
/// The lengths of the first rows in the column that says how long the samples
/// of a field are; false where they are not known without reading them.
bool known_lengths(const std::vector<Field>& fields, const FieldKind& kind,
                   const Source& source, std::span<std::int32_t> lengths);
SourceTraits source_traits(const Source& source);

/// Of rows that are named by their source: SHA-256 over what that is, how many
/// rows it has, the fields' recipes and statistics, and the split, in hex. No
/// row is read. `stored`: without what only batches depend on.
std::string named_fingerprint(const std::vector<Field>& fields,
                              const Split& split,
                              const std::vector<Json>& statistics,
                              const Source& source, bool stored);
/// What each of these has that is not fitted; null of the others.
std::vector<Json> unfitted_statistics(const BoundFields& fields);

}  // namespace penstock
